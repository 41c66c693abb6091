// Checkpoints made by hand, a file or a tensor at a time.
#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/safetensors.h"

namespace sluice::testing {

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden" / name;
}

/// The bytes of a safetensors file with this header text and `data_bytes` bytes behind it, whatever the
/// header says.
inline std::string raw_safetensors(std::string_view header, size_t data_bytes) {
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<char>(i));
  return file;
}

/// Tensors by name with bytes of their own, to be written as a checkpoint.
class TensorSet {
 public:
  template <class T>
  TensorSet& add(const std::string& name, DType dtype, std::vector<int64_t> shape,
                 const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    tensors_[name] = Stored{dtype, std::move(shape), std::move(bytes)};
    return *this;
  }
  void remove(const std::string& name) { tensors_.erase(name); }

  void write(const std::filesystem::path& path) const {
    std::vector<TensorToWrite> list;
    for (const auto& [name, tensor] : tensors_)
      list.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    write_safetensors(path, list);
  }
  /// A folder with config.json and model.safetensors.
  void write_checkpoint(const std::filesystem::path& folder, std::string_view config = "{}") const {
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / "config.json", config);
    write(folder / "model.safetensors");
  }

 private:
  struct Stored {
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Stored> tensors_;
};

}  // namespace sluice::testing
