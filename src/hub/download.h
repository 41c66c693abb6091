// Content of the hub on its way into the cache's blobs.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/http.h"
#include "hub/listing.h"

namespace sluice::hub {

struct DownloadOptions {
  int parallel = 8;                             // files at once
  int attempts = 6;                             // in a row without a byte, before a file is given up
  std::chrono::milliseconds first_pause{1000};  // before the second attempt; doubled for each further one
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // bytes; often; may throw to stop
};

/// Fetches files of one commit into `repo`/blobs, each under its hash, by way of HASH.incomplete, which a
/// later call goes on from (so do other programs that use the cache). Files that are there are left alone.
/// `path_of` gives the path at the endpoint. Before anything is fetched the free space is checked; afterwards
/// each file's size and hash. Returns the bytes that came over the network. Throws Error: kIo (no room, no
/// connection, answers that are errors, transfers that break off too often, a file that another process is
/// fetching), kBadFile (more bytes than announced, a wrong hash: the file is removed and named).
uint64_t download(const HubAccess& access, const std::filesystem::path& repo,
                  const std::vector<RemoteFile>& files,
                  const std::function<std::string(const RemoteFile&)>& path_of,
                  const DownloadOptions& options);

/// What an answer of the hub that is an error means for `what` ("org/name"), and what to do, as one line.
std::string describe_failure(const HttpOutcome& outcome, const HubAccess& access, const std::string& what);

}  // namespace sluice::hub
