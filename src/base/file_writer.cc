// Writing files: under a temporary name beside the place, or straight to a pipe or device.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel

[[noreturn]] void fail(const fs::path& path, const char* what, int code = errno) {
  throw Error(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              path.string() + ": cannot " + what + ": " + std::strerror(code));
}

fs::path temporary_name(fs::path path) { return path += ".tmp" + std::to_string(::getpid()); }

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

}  // namespace

OutputPlace output_place(const fs::path& path) {
  fs::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const fs::path folder = fs::canonical(folder_of(at), error);
    if (error) return {at, false};  // creating it will say why not
    at = folder / at.filename();
    struct stat status {};
    if (::lstat(at.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return {at, false};
    if (S_ISDIR(status.st_mode)) {
      throw Error(ErrorCode::kInvalidArgument, path.string() + ": is a folder, not a file");
    }
    // Links of /proc stand for open files (/dev/stdout leads there): their texts are no names.
    if (!S_ISLNK(status.st_mode) || at.string().starts_with("/proc/")) return {at, true};
    const fs::path target = fs::read_symlink(at, error);
    if (error) fail(path, "follow the link", error.value());
    at = folder / target;  // an absolute target replaces the folder
  }
  fail(path, "follow the link", ELOOP);
}

void check_can_write(const fs::path& path) {
  const OutputPlace place = output_place(path);
  if (place.direct) {
    if (::access(place.path.c_str(), W_OK) != 0) fail(path, "write");
    return;
  }
  // access() would say yes to root in folders where nobody creates files.
  const fs::path probe = temporary_name(place.path);
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno != EEXIST) fail(path, "create");
  if (fd < 0) return;
  ::close(fd);
  ::unlink(probe.c_str());
}

FileWriter::FileWriter(const fs::path& path, unsigned mode) : name_(path), place_(output_place(path)) {
  if (place_.direct) {
    fd_ = ::open(place_.path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail(name_, "open");
    return;
  }
  temporary_ = temporary_name(place_.path);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd_ < 0) fail(name_, "create");
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!place_.direct) ::unlink(temporary_.c_str());
}

void FileWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  SLUICE_CHECK(!place_.direct || offset == written_);
  while (!bytes.empty()) {
    const ssize_t n = place_.direct ? ::write(fd_, bytes.data(), bytes.size())
                                    : ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(name_, "write");
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  written_ = offset;
}

void FileWriter::commit(bool durable) {
  if (!place_.direct) {
    if (durable && ::fsync(fd_) != 0) fail(name_, "write");
    if (::rename(temporary_.c_str(), place_.path.c_str()) != 0) fail(name_, "rename the finished file to");
  }
  if (::close(std::exchange(fd_, -1)) != 0) fail(name_, "write");
}

void write_file_atomically(const fs::path& path, std::string_view content, unsigned mode) {
  FileWriter file(path, mode);
  file.write_at(0, std::as_bytes(std::span(content)));
  file.commit();
}

}  // namespace sluice
