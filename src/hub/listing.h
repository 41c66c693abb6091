// What a repository of the hub holds, as its API says, and which of that is worth fetching.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hub/blob_hash.h"

namespace sluice::hub {

struct RemoteFile {
  std::string name;  // with folders: a relative path that leads nowhere else
  uint64_t size = 0;
  std::string hash;  // of its content; also the name of its blob in the cache
  BlobHash::Kind hash_kind = BlobHash::Kind::kGitBlob;
};

struct Listing {
  std::string commit;
  std::vector<RemoteFile> files;
};

/// The answer of `/api/models/ORG/NAME/revision/REVISION?blobs=true`. Nothing in it is trusted: throws Error
/// kBadFile, with `source` and the field, for broken JSON, a missing field, hashes that are none, sizes
/// beyond 2^50, names that are absolute, lead upwards or hold control characters, and names that stand twice.
Listing parse_listing(std::string_view json, const std::string& source);

/// Of a listing: what is fetched, and what is left out because nothing here reads it (weights in other forms,
/// copies in subfolders, pictures).
struct Selection {
  std::vector<RemoteFile> files, skipped;
  uint64_t bytes() const;
  uint64_t skipped_bytes() const;
};

/// Throws Error kUnsupported where a repository has no safetensors files; what it has instead is named.
Selection select_files(const Listing& listing, const std::string& source);

}  // namespace sluice::hub
