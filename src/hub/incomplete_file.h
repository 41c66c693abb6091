// A blob of the cache that is not there yet: what has arrived of it, and a lock.
#pragma once

#include <filesystem>
#include <span>

#include "hub/blob_hash.h"
#include "hub/listing.h"

namespace sluice::hub {

class IncompleteFile {
 public:
  /// Opens `repo`/blobs/HASH.incomplete, or makes it, and hashes what is in it. Throws Error kIo; also where
  /// another process holds the file's lock, which is the one that other programs take too.
  IncompleteFile(const std::filesystem::path& repo, const RemoteFile& file);
  IncompleteFile(const IncompleteFile&) = delete;
  IncompleteFile& operator=(const IncompleteFile&) = delete;
  ~IncompleteFile();

  uint64_t bytes() const { return bytes_; }
  bool is_full() const { return bytes_ == file_.size; }
  /// Throws Error kBadFile where there would be more than the announced size, kIo if the disk is full.
  void append(std::span<const std::byte> bytes);
  void start_anew();
  /// Gives the blob its name. Throws Error kBadFile if the hash is wrong; then the file is removed.
  void finish();

 private:
  void take_lock();
  void hash_what_is_there();
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path repo_, blob_, path_;
  RemoteFile file_;
  BlobHash hash_;
  uint64_t bytes_ = 0;
  int lock_ = -1, fd_ = -1;
};

}  // namespace sluice::hub
