// Writing a safetensors file piece by piece: the header first, then tensors in any order, so that memory
// holds one.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/tensor.h"

namespace sluice {

/// What the header says about a tensor.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t bytes() const;
};

/// A file that appears under its final name when finish() has run, and not at all if the writer ends before;
/// FileWriter says what happens to links, pipes and devices.
class SafetensorsWriter {
 public:
  /// Tensors lie in the order of `specs`; names must differ. The header is padded with spaces to a multiple
  /// of 8. Throws as FileWriter.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorSpec> specs,
                    const std::map<std::string, std::string>& metadata = {});

  /// The next bytes of tensor `index`: all at once, or piece after piece. Where the file is a pipe, tensors
  /// have to come in order. Throws Error kIo.
  void write(size_t index, std::span<const std::byte> bytes);
  /// Renames to the final name. Every tensor must have been written. Throws Error kIo.
  void finish();

 private:
  struct Range {
    uint64_t offset = 0, bytes = 0;
    uint64_t written = 0;
  };

  FileWriter file_;
  std::vector<Range> ranges_;
};

}  // namespace sluice
