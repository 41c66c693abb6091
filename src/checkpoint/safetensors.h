// The safetensors format: a header length (u64, little endian), a JSON header, then the tensors' bytes.
// https://huggingface.co/docs/safetensors (format section)
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/tensor.h"

namespace sluice {

/// One mapped safetensors file. Every offset is checked against the file before a Tensor exists, so that
/// nothing reads past the mapping.
class SafetensorsFile {
 public:
  /// Throws Error kBadFile (path, tensor, expected and actual bytes) or kNotFound.
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::vector<Tensor>& tensors() const { return tensors_; }  // in order of offset
  const Tensor* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::vector<Tensor> tensors_;
  std::vector<size_t> by_name_;  // indices of tensors_, sorted by name
  std::map<std::string, std::string> metadata_;
};

/// One tensor to be written; `bytes` must hold product(shape) * size_of(dtype) bytes.
struct TensorToWrite {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes a safetensors file atomically; the content depends on the arguments alone. Header padded with
/// spaces to 8 bytes.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace sluice
