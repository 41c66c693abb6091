// Files through the POSIX calls, with the path in every message.
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace sluice {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  const int code = errno;
  throw Error(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              path.string() + ": cannot " + what + ": " + std::strerror(code));
}

[[noreturn]] void refuse_folder(const std::filesystem::path& path) {
  throw Error(ErrorCode::kInvalidArgument, path.string() + ": is a folder, not a file");
}

// Without O_NONBLOCK a pipe in the place of a file would wait for a writer that never comes.
Descriptor open_regular(const std::filesystem::path& path, size_t& size) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail(path, "open");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail(path, "read the size");
  if (S_ISDIR(status.st_mode)) refuse_folder(path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, path.string() + ": is a pipe or device, not a regular file");
  }
  size = static_cast<size_t>(status.st_size);
  return Descriptor(fd.release());
}

std::string read_to_end(int fd, const std::filesystem::path& path, size_t max_bytes) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "read");
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > max_bytes) {
      throw Error(ErrorCode::kBadFile,
                  path.string() + ": larger than the limit of " + format_bytes(max_bytes));
    }
  }
}

}  // namespace

MappedFile MappedFile::open(const std::filesystem::path& path) {
  MappedFile file;
  file.path_ = path;
  const Descriptor fd = open_regular(path, file.size_);
  if (file.size_ == 0) return file;
  void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) fail(path, "map");
  file.data_ = static_cast<const std::byte*>(data);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string read_text_file(const std::filesystem::path& path, size_t max_bytes) {
  size_t size = 0;
  const Descriptor fd = open_regular(path, size);
  return read_to_end(fd.get(), path, max_bytes);
}

std::string read_standard_input() { return read_to_end(STDIN_FILENO, "standard input", size_t{1} << 30); }

std::string read_file_or_pipe(const std::filesystem::path& path, size_t max_bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) fail(path, "open");
  struct stat status {};
  if (::fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode)) refuse_folder(path);
  return read_to_end(fd.get(), path, max_bytes);
}

std::string read_input(const std::string& file, size_t max_bytes) {
  return file == "-" ? read_to_end(STDIN_FILENO, input_name(file), max_bytes)
                     : read_file_or_pipe(file, max_bytes);
}

std::string input_name(const std::string& file) { return file == "-" ? "standard input" : file; }

}  // namespace sluice
