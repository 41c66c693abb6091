// The same weights in the layouts of other publishers: names, packed experts, nested configurations, types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/make_checkpoint.h"
#include "checkpoint/nvfp4_quantize.h"
#include "engine/golden_checks.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::GoldenModel;
using testing::TemporaryFolder;
using testing::TensorSet;

std::vector<std::byte> bytes_of(const Tensor& tensor) { return {tensor.bytes.begin(), tensor.bytes.end()}; }

json config_of(const std::string& name) {
  return json::parse(read_text_file(testing::golden(name) / "config.json"));
}

bool is_expert(const std::string& name) { return name.find(".mlp.experts.") != std::string::npos; }

/// The tensors of a layer's experts on top of each other, as [E, rows, columns].
void add_packed(const Checkpoint& checkpoint, int64_t layer, int64_t experts, TensorSet& set,
                const std::string& prefix) {
  std::vector<std::byte> both, down;
  const auto append = [&](std::vector<std::byte>& to, int64_t e, const std::string& part) -> const Tensor& {
    const Tensor& tensor = checkpoint.get("model.layers." + std::to_string(layer) + ".mlp.experts." +
                                          std::to_string(e) + "." + part + ".weight");
    to.insert(to.end(), tensor.bytes.begin(), tensor.bytes.end());
    return tensor;
  };
  std::vector<int64_t> narrow, wide;
  for (int64_t e = 0; e < experts; ++e) {
    append(both, e, "gate_proj");
    wide = append(both, e, "up_proj").shape;
    narrow = append(down, e, "down_proj").shape;
  }
  set.add(prefix + "gate_up_proj", DType::kBf16, {experts, 2 * wide[0], wide[1]}, both);
  set.add(prefix + "down_proj", DType::kBf16, {experts, narrow[0], narrow[1]}, down);
}

TEST(PublishedLayout, OfALanguageModelInsideAnotherGivesTheSameText) {
  const Checkpoint original = Checkpoint::open(testing::golden("qwen3_moe"));
  TensorSet set;
  for (const Tensor* tensor : original.tensors()) {
    if (is_expert(tensor->name)) continue;
    std::string name = tensor->name;
    if (name.starts_with("model.")) name.insert(6, "language_model.");
    // Small tensors come in F32, too, and the first router alone.
    if (name.ends_with("norm.weight") || name.ends_with("layers.0.mlp.gate.weight")) {
      set.add(name, DType::kF32, tensor->shape, to_f32(*tensor));
    } else {
      set.add(name, tensor->dtype, tensor->shape, bytes_of(*tensor));
    }
  }
  for (int64_t l = 0; l < 3; ++l) {
    add_packed(original, l, 8, set, "model.language_model.layers." + std::to_string(l) + ".mlp.experts.");
  }
  set.add<float>("model.visual.patch_embed.weight", DType::kF32, {2}, {1, 2});

  json text = config_of("qwen3_moe");
  text["model_type"] = "qwen3_moe_text";
  text.erase("architectures");
  const json whole = {
      {"model_type", "some_wrapper"}, {"text_config", text}, {"vision_config", json::object()}};
  const TemporaryFolder folder;
  set.write_checkpoint(folder.path(), whole.dump());
  const GoldenModel model(folder.path(), testing::golden("qwen3_moe"));
  model.expect_logits_and_experts(1e-3);
  model.expect_greedy_text();
}

TEST(PublishedLayout, OfCompressedTensorsGivesTheSameText) {
  const Checkpoint original = Checkpoint::open(testing::golden("qwen3_moe_nvfp4"));
  TensorSet set;
  for (const Tensor* tensor : original.tensors()) {
    std::string name = tensor->name;
    const auto replace_end = [&](std::string_view end, std::string_view with) {
      if (name.ends_with(end)) name.replace(name.size() - end.size(), end.size(), with);
    };
    if (is_expert(name) && name.ends_with(".weight_scale_2")) {
      replace_end(".weight_scale_2", ".weight_global_scale");
      set.add<float>(name, DType::kF32, {1}, {1.0f / to_f32(*tensor)[0]});
      continue;
    }
    if (is_expert(name)) replace_end(".weight", ".weight_packed");
    replace_end(".input_scale", ".input_global_scale");
    set.add(name, tensor->dtype, tensor->shape, bytes_of(*tensor));
  }
  json config = config_of("qwen3_moe_nvfp4");
  config["quantization_config"] = {{"quant_method", "compressed-tensors"},
                                   {"format", "nvfp4-pack-quantized"},
                                   {"ignore", {"lm_head", "re:.*self_attn.*", "re:.*mlp.gate$"}}};
  const TemporaryFolder folder;
  set.write_checkpoint(folder.path(), config.dump());
  const GoldenModel model(folder.path(), testing::golden("qwen3_moe_nvfp4"));
  model.expect_logits_and_experts(1e-3);
  model.expect_greedy_text();
}

/// qwen3_moe with its head in NVFP4, or with the numbers that this decodes to in F32.
void write_with_head(const std::filesystem::path& folder, bool decoded) {
  const Checkpoint original = Checkpoint::open(testing::golden("qwen3_moe"));
  TensorSet set;
  for (const Tensor* tensor : original.tensors()) {
    if (tensor->name != "lm_head.weight")
      set.add(tensor->name, tensor->dtype, tensor->shape, bytes_of(*tensor));
  }
  ThreadPool pool(1);
  const Tensor& head = original.get("lm_head.weight");
  const int64_t n = head.shape[0], k = head.shape[1];
  const nvfp4::QuantizedMatrix codes = nvfp4::quantize(to_f32(head), n, k, pool);
  if (decoded) {
    const EncodedMatrix matrix{WeightFormat::kNvfp4, n,           k, codes.codes.data(),
                               codes.scales.data(),  codes.global};
    std::vector<float> values(static_cast<size_t>(n * k));
    for (int64_t row = 0; row < n; ++row) decode_row(matrix, row, values.data() + row * k);
    set.add("lm_head.weight", DType::kF32, {n, k}, values);
  } else {
    set.add("lm_head.weight", DType::kU8, {n, k / 2}, codes.codes);
    set.add("lm_head.weight_scale", DType::kF8E4m3, {n, k / 16}, codes.scales);
    set.add<float>("lm_head.weight_scale_2", DType::kF32, {}, {codes.global});
  }
  set.write_checkpoint(folder, config_of("qwen3_moe").dump());
}

TEST(PublishedLayout, HasAHeadInNvfp4ThatIsMultipliedAsItsNumbersAre) {
  const TemporaryFolder packed, plain;
  write_with_head(packed.path(), false);
  write_with_head(plain.path(), true);
  const GoldenModel a(packed.path(), testing::golden("qwen3_moe")),
      b(plain.path(), testing::golden("qwen3_moe"));
  const auto with_codes = a.runtime({}), with_numbers = b.runtime({});
  for (const int64_t chunk : {1, 512}) {
    // Formats add up their columns in different orders.
    const auto codes = a.run(*with_codes, 0, chunk, 100), numbers = b.run(*with_numbers, 0, chunk, 100);
    EXPECT_EQ(codes.top_k, numbers.top_k);
    EXPECT_THAT(codes.logits, ::testing::Pointwise(::testing::FloatNear(1e-5f), numbers.logits)) << chunk;
  }
}

TEST(PublishedLayout, OfMixtralInNewNamesGivesTheSameText) {
  const Checkpoint original = Checkpoint::open(testing::golden("mixtral"));
  TensorSet set;
  for (const Tensor* tensor : original.tensors()) {
    std::string name = tensor->name;
    if (const size_t at = name.find("block_sparse_moe"); at != std::string::npos) {
      if (name.find(".experts.") != std::string::npos) continue;
      name.replace(at, 16, "mlp");
    }
    set.add(name, tensor->dtype, tensor->shape, bytes_of(*tensor));
  }
  for (int64_t l = 0; l < 3; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    std::vector<std::byte> gate_up, last;
    for (int64_t e = 0; e < 4; ++e) {
      const std::string expert = layer + "block_sparse_moe.experts." + std::to_string(e) + ".";
      for (const std::string part : {"w1", "w3"}) {
        const Tensor& tensor = original.get(expert + part + ".weight");
        gate_up.insert(gate_up.end(), tensor.bytes.begin(), tensor.bytes.end());
      }
      const Tensor& tensor = original.get(expert + "w2.weight");
      last.insert(last.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    set.add(layer + "mlp.experts.gate_up_proj", DType::kBf16, {4, 160, 64}, gate_up);
    set.add(layer + "mlp.experts.down_proj", DType::kBf16, {4, 64, 80}, last);
  }
  const TemporaryFolder folder;
  set.write_checkpoint(folder.path(), config_of("mixtral").dump());
  const GoldenModel model(folder.path(), testing::golden("mixtral"));
  model.expect_logits_and_experts(1e-3);
  model.expect_greedy_text();
}

}  // namespace
}  // namespace sluice
