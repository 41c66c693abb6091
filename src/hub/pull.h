// Fetching a model from a hub into the cache.
#pragma once

#include <filesystem>
#include <functional>

#include "hub/download.h"
#include "hub/model_name.h"

namespace sluice::hub {

struct PullOptions {
  ModelName name;
  std::filesystem::path cache;
  HubAccess access;
  DownloadOptions download;
  std::function<void(const Selection&)> selected = {};  // once it is known what is fetched
};

struct PullSummary {
  std::filesystem::path snapshot;  // the folder with the model
  uint64_t fetched_bytes = 0;      // over the network
};

/// Asks the hub what the revision holds, fetches what is worth it (select_files) into the cache's blobs,
/// links the snapshot, and writes the ref last: a revision that has one is complete. What was fetched before,
/// by whatever program, is not fetched again; what a stopped pull has left is gone on from. Throws Error as
/// parse_listing, select_files and download, and kIo for everything that the network and the disk refuse.
PullSummary pull(const PullOptions& options);

}  // namespace sluice::hub
