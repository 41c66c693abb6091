// The reference's results beside a tiny checkpoint, and what a comparison with them needs.
#pragma once

#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace sluice {

struct Golden {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> logits;  // of each sequence [n, vocab]
  std::vector<std::vector<std::pair<int64_t, std::vector<int32_t>>>>
      top_k;                    // of each sequence: layer, [n, K]
  std::vector<int32_t> greedy;  // ids[1] and 24 more

  static Golden read(const std::filesystem::path& folder) {
    const SafetensorsFile file = SafetensorsFile::open(folder / "golden.safetensors");
    Golden golden;
    for (int j = 0;; ++j) {
      const std::string index = std::to_string(j);
      const Tensor* ids = file.find("ids." + index);
      if (ids == nullptr) break;
      golden.ids.push_back(integers(*ids));
      golden.logits.push_back(to_f32(*file.find("logits." + index)));
      auto& layers = golden.top_k.emplace_back();
      for (const Tensor& tensor : file.tensors()) {
        if (tensor.name.rfind("topk." + index + ".", 0) != 0) continue;
        const size_t at = tensor.name.find("layers.") + 7;
        layers.emplace_back(std::stoll(tensor.name.substr(at)), integers(tensor));
      }
    }
    if (const Tensor* greedy = file.find("greedy.1")) golden.greedy = integers(*greedy);
    return golden;
  }

  static std::vector<int32_t> integers(const Tensor& tensor) {
    std::vector<int32_t> values;
    const size_t width = size_of(tensor.dtype);
    for (size_t i = 0; i < tensor.bytes.size(); i += width) {
      int64_t value = 0;
      std::memcpy(&value, tensor.bytes.data() + i, width);  // little endian; ids are not negative
      values.push_back(static_cast<int32_t>(value));
    }
    return values;
  }
};

/// Row r of [n, k] as a set.
inline std::set<int32_t> row_set(const std::vector<int32_t>& ids, int64_t k, int64_t r) {
  return {ids.begin() + r * k, ids.begin() + (r + 1) * k};
}

}  // namespace sluice
