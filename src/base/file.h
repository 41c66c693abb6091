// Files: read-only mappings, whole-file reads, and writes that never leave half a file under the final name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// A read-only mapping of a whole file. Move-only; the bytes live as long as the object.
class MappedFile {
 public:
  /// Throws Error kNotFound, kIo or kInvalidArgument (no regular file) with the path in the message. An empty
  /// file maps to an empty span.
  static MappedFile open(const std::filesystem::path& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// The whole file as text. Throws Error kNotFound, kIo or kInvalidArgument (no regular file); kBadFile if it
/// is larger than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);

/// Standard input to its end. Throws Error kIo.
std::string read_standard_input();
/// A file, pipe or device to its end. Throws as read_text_file.
std::string read_file_or_pipe(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);
/// What a user names as input: "-" is standard input, all else is read by read_file_or_pipe.
std::string read_input(const std::string& file, size_t max_bytes = size_t{1} << 30);
/// How messages call it: "standard input" for "-".
std::string input_name(const std::string& file);

/// Where the bytes of an output go. Symbolic links are followed: what they lead to is replaced, not they.
struct OutputPlace {
  std::filesystem::path path;
  bool direct = false;  // a pipe, a device or an open file of /proc: written as it is, never replaced
};

/// Throws Error kInvalidArgument (a folder) or kIo (a circle of links).
OutputPlace output_place(const std::filesystem::path& path);
/// Throws the Error that writing `path` would end with, as far as creating an empty file beside it tells.
void check_can_write(const std::filesystem::path& path);

/// A file that is being written. It appears under its name, or replaces what is there, in commit(); without
/// that nothing changes. Where output_place says direct, bytes go there at once and have to come in order.
class FileWriter {
 public:
  /// `mode` is the file's permission bits. Throws Error kNotFound (no such folder), kIo or kInvalidArgument.
  explicit FileWriter(const std::filesystem::path& path, unsigned mode = 0644);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  /// Throws Error kIo.
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  /// `durable`: what was written is on the disk before the name changes. Throws Error kIo.
  void commit(bool durable = false);

 private:
  std::filesystem::path name_;  // as the caller wrote it
  OutputPlace place_;
  std::filesystem::path temporary_;  // empty if direct
  int fd_ = -1;
  uint64_t written_ = 0;
};

/// Writes a whole file through a FileWriter.
void write_file_atomically(const std::filesystem::path& path, std::string_view content, unsigned mode = 0644);

}  // namespace sluice
