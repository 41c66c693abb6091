// Appending, hashing and naming of blobs.
#include "hub/incomplete_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/printable.h"

namespace sluice::hub {
namespace fs = std::filesystem;

IncompleteFile::IncompleteFile(const fs::path& repo, const RemoteFile& file)
    : repo_(repo),
      blob_(repo / "blobs" / file.hash),
      path_(blob_),
      file_(file),
      hash_(file.hash_kind, file.size) {
  path_ += ".incomplete";
  take_lock();
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  try {
    if (fd_ < 0) fail("create");
    hash_what_is_there();
  } catch (...) {
    ::close(fd_);
    ::close(lock_);
    throw;
  }
}

IncompleteFile::~IncompleteFile() {
  ::close(fd_);
  ::close(lock_);
  std::error_code ignored;  // a destructor has nobody to tell
  if (bytes_ == 0) fs::remove(path_, ignored);
}

void IncompleteFile::fail(const char* what) const {
  throw Error(ErrorCode::kIo, path_.string() + ": cannot " + what + " (" + printable(file_.name) +
                                  "): " + std::strerror(errno));
}

void IncompleteFile::take_lock() {
  const fs::path folder = repo_.parent_path() / ".locks" / repo_.filename();
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path lock = folder / (file_.hash + ".lock");
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) throw Error(ErrorCode::kIo, lock.string() + ": cannot create: " + std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(lock_);
  throw Error(ErrorCode::kIo, repo_.string() + ": another program is fetching " + printable(file_.name) +
                                  "; wait for its end and try again");
}

void IncompleteFile::hash_what_is_there() {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail("read");
  if (static_cast<uint64_t>(status.st_size) > file_.size) return start_anew();
  std::vector<std::byte> piece(1 << 20);
  while (bytes_ < static_cast<uint64_t>(status.st_size)) {
    const ssize_t n = ::pread(fd_, piece.data(), piece.size(), static_cast<off_t>(bytes_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("read");
    hash_.add(std::span(piece).first(static_cast<size_t>(n)));
    bytes_ += static_cast<uint64_t>(n);
  }
}

void IncompleteFile::start_anew() {
  if (::ftruncate(fd_, 0) != 0) fail("empty");
  hash_ = BlobHash(file_.hash_kind, file_.size);
  bytes_ = 0;
}

void IncompleteFile::append(std::span<const std::byte> bytes) {
  if (bytes.size() > file_.size - bytes_) {
    start_anew();  // whatever it is, it is not this file
    throw Error(ErrorCode::kBadFile, printable(file_.name) + ": the server sends more than the " +
                                         std::to_string(file_.size) + " bytes that the hub announces");
  }
  hash_.add(bytes);
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(bytes_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    bytes = bytes.subspan(static_cast<size_t>(n));
    bytes_ += static_cast<uint64_t>(n);
  }
}

void IncompleteFile::finish() {
  SLUICE_CHECK(is_full());
  const std::string hash = hash_.finish();
  if (hash != file_.hash) {
    start_anew();
    throw Error(ErrorCode::kBadFile, printable(file_.name) + ": what arrived has the hash " + hash +
                                         ", but the hub says " + file_.hash + "; it was removed, pull again");
  }
  if (::fsync(fd_) != 0) fail("write");
  if (::rename(path_.c_str(), blob_.c_str()) != 0) fail("rename");
}

}  // namespace sluice::hub
