// Files: read-only mappings, whole-file reads, and writes that never leave half a file under the final name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// A read-only mapping of a whole file. Move-only; the bytes live as long as the object.
class MappedFile {
 public:
  /// Throws Error kNotFound or kIo with the path in the message. An empty file maps to an empty span.
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

/// The whole file as text. Throws Error kNotFound or kIo; kBadFile if it is larger than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);

/// Writes under a temporary name beside `path`, then renames. Throws Error kIo. `mode` is the file's
/// permission bits.
void write_file_atomically(const std::filesystem::path& path, std::string_view content, unsigned mode = 0644);

/// Standard input to its end. Throws Error kIo.
std::string read_standard_input();

}  // namespace sluice
