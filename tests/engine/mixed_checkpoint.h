// A tiny checkpoint whose MoE layers have three formats, made from a golden one.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/scalar.h"
#include "checkpoint/make_checkpoint.h"
#include "checkpoint/weights.h"

namespace sluice::testing {

/// The experts of layer 0 stay in NVFP4, those of layer 1 become FP8 in (ragged) blocks, those of layer 2
/// BF16. 16 experts a layer, hidden 64, intermediate 48; everything else is copied.
inline void write_mixed_checkpoint(const std::filesystem::path& folder) {
  const Checkpoint original = Checkpoint::open(golden("qwen3_moe_nvfp4"));
  TensorSet set;
  for (const Tensor* tensor : original.tensors()) {
    const bool expert = tensor->name.find(".experts.") != std::string::npos;
    if (expert && !tensor->name.starts_with("model.layers.0.")) continue;
    set.add(tensor->name, tensor->dtype, tensor->shape,
            std::vector<std::byte>(tensor->bytes.begin(), tensor->bytes.end()));
  }
  for (const Tensor* tensor : original.tensors()) {
    constexpr std::string_view kEnd = ".weight";
    if (tensor->dtype != DType::kU8 || tensor->name.starts_with("model.layers.0.")) continue;
    const std::string module = tensor->name.substr(0, tensor->name.size() - kEnd.size());
    const int64_t n = tensor->shape[0], k = 2 * tensor->shape[1];
    const std::vector<float> values = to_f32(find_matrix(original, module, n, k));
    if (tensor->name.starts_with("model.layers.2.")) {
      std::vector<uint16_t> halves;
      for (const float value : values) halves.push_back(f32_to_bf16(value));
      set.add(tensor->name, DType::kBf16, {n, k}, halves);
      continue;
    }
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    const float scale = largest / 448;
    std::vector<uint8_t> codes;
    for (const float value : values) codes.push_back(f32_to_e4m3(value / scale));
    set.add(tensor->name, DType::kF8E4m3, {n, k}, codes);
    set.add<float>(module + ".weight_scale_inv", DType::kF32, {1, 1}, {scale});
  }
  std::string config = read_text_file(golden("qwen3_moe_nvfp4") / "config.json");
  const size_t algo = config.find("\"NVFP4\"");
  config.replace(algo, 7, "\"MIXED_PRECISION\"");
  set.write_checkpoint(folder, config);
}

}  // namespace sluice::testing
