// Conversion of whole checkpoints: what is written, what is kept, what is refused.
#include "checkpoint/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/thread_pool.h"
#include "checkpoint/convert_plan.h"
#include "checkpoint/fp8_quantize.h"
#include "checkpoint/make_checkpoint.h"
#include "checkpoint/nvfp4_quantize.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden;
using testing::TemporaryFolder;
using testing::TensorSet;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

// Every tensor of `original` must be in `converted`: copied, or quantised as nvfp4::quantize does.
void expect_converted(const Checkpoint& original, const Checkpoint& converted) {
  size_t outputs = 0;
  ThreadPool pool(1);
  for (const Tensor* tensor : original.tensors()) {
    if (!is_expert_weight(tensor->name)) {
      EXPECT_TRUE(same_bytes(*tensor, converted.get(tensor->name))) << tensor->name;
      outputs += 1;
      continue;
    }
    outputs += 3;
    const int64_t n = tensor->shape[0], k = tensor->shape[1];
    const std::string module = tensor->name.substr(0, tensor->name.size() - 7);
    const StoredMatrix matrix = find_matrix(converted, module, n, k);
    ASSERT_EQ(matrix.format, WeightFormat::kNvfp4);
    const auto expected = nvfp4::quantize(to_f32(*tensor), n, k, pool);
    EXPECT_TRUE(std::ranges::equal(matrix.weight.tensor->bytes, std::as_bytes(std::span(expected.codes))))
        << module;
    EXPECT_TRUE(std::ranges::equal(matrix.scale.tensor->bytes, std::as_bytes(std::span(expected.scales))))
        << module;
    EXPECT_EQ(matrix.global, expected.global) << module;
  }
  EXPECT_EQ(converted.tensors().size(), outputs);
}

TEST(Convert, QuantisesExpertsAndCopiesTheRest) {
  const TemporaryFolder folder;
  const ConvertSummary summary = convert({.model = golden("qwen3_moe"), .out = folder / "out"});
  const Checkpoint original = Checkpoint::open(golden("qwen3_moe"));
  const Checkpoint converted = Checkpoint::open(folder / "out");
  expect_converted(original, converted);
  EXPECT_EQ(summary.tensors_quantised, 72);
  EXPECT_EQ(summary.tensors_copied, 30);
  EXPECT_EQ(summary.shards, 1);
  EXPECT_EQ(summary.bytes_read, original.total_bytes());
  EXPECT_EQ(summary.bytes_written, converted.total_bytes());
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"out"});
  EXPECT_EQ(names_in(folder / "out"), (std::set<std::string>{"config.json", "generation_config.json",
                                                             "hf_quant_config.json", "model.safetensors"}));
}

TEST(Convert, LaysTensorsOutAsModelOptDoes) {
  const TemporaryFolder folder;
  convert({.model = golden("qwen3_moe"), .out = folder / "out"});
  const Checkpoint converted = Checkpoint::open(folder / "out");
  const Checkpoint published = Checkpoint::open(golden("qwen3_moe_nvfp4"));
  for (const Tensor* tensor : converted.tensors()) {
    if (tensor->name.find(".experts.") == std::string::npos) continue;
    const Tensor& twin = published.get(tensor->name, tensor->shape);
    EXPECT_EQ(tensor->dtype, twin.dtype) << tensor->name;
  }
}

TEST(Convert, WritesTheConfigWithItsQuantisationAndEverythingElseUnchanged) {
  const TemporaryFolder folder;
  convert({.model = golden("qwen3_moe_mixed_dense"), .out = folder / "out"});
  const Config before = Config::read(golden("qwen3_moe_mixed_dense") / "config.json");
  const Config after = Config::read(folder / "out/config.json");
  std::vector<std::string> keys = before.keys();
  keys.push_back("quantization_config");
  EXPECT_EQ(after.keys(), keys);
  EXPECT_EQ(after.number({"rms_norm_eps"}, 0, 1), before.number({"rms_norm_eps"}, 0, 1));
  const Config quantization = after.object({"quantization_config"});
  EXPECT_EQ(quantization.string({"quant_method"}), "modelopt");
  EXPECT_EQ(quantization.string({"quant_algo"}), "NVFP4");
  const auto ignored = quantization.strings({"ignore"});
  EXPECT_THAT(ignored, ::testing::Contains("lm_head"));
  EXPECT_THAT(ignored, ::testing::Contains(::testing::EndsWith(".mlp.gate_proj")));
  EXPECT_THAT(ignored, ::testing::Not(::testing::Contains(::testing::HasSubstr("experts."))));
}

// A projection that publishers quantise is FP8 with fp8::quantize's bytes; the rest is a copy.
void expect_fp8(const Checkpoint& original, const Checkpoint& converted) {
  size_t outputs = 0;
  ThreadPool pool(1);
  for (const Tensor* tensor : original.tensors()) {
    if (!is_quantised(*tensor, WeightFormat::kFp8Block)) {
      EXPECT_TRUE(same_bytes(*tensor, converted.get(tensor->name))) << tensor->name;
      outputs += 1;
      continue;
    }
    outputs += 2;
    const int64_t n = tensor->shape[0], k = tensor->shape[1];
    const std::string module = tensor->name.substr(0, tensor->name.size() - 7);
    ASSERT_EQ(find_matrix(converted, module, n, k).format, WeightFormat::kFp8Block) << module;
    const auto expected = fp8::quantize(to_f32(*tensor), n, k, pool);
    EXPECT_TRUE(
        std::ranges::equal(converted.get(module + ".weight").bytes, std::as_bytes(std::span(expected.codes))))
        << module;
    EXPECT_EQ(to_f32(converted.get(module + ".weight_scale_inv")), expected.scales) << module;
  }
  EXPECT_EQ(converted.tensors().size(), outputs);
}

TEST(Convert, QuantisesExpertsAttentionAndDenseLayersToFp8) {
  for (const char* name : {"qwen3_moe", "qwen3_moe_mixed_dense", "qwen2_moe", "olmoe", "mixtral"}) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    const ConvertSummary summary =
        convert({.model = golden(name), .out = folder / "out", .format = WeightFormat::kFp8Block});
    const Checkpoint converted = Checkpoint::open(folder / "out");
    expect_fp8(Checkpoint::open(golden(name)), converted);
    EXPECT_EQ(summary.bytes_written, converted.total_bytes());
    EXPECT_EQ(converted.get("model.layers.0.self_attn.q_proj.weight").dtype, DType::kF8E4m3);
    EXPECT_NE(converted.get("model.embed_tokens.weight").dtype, DType::kF8E4m3);
  }
}

TEST(Convert, WritesTheConfigOfFp8AsItsPublishersDo) {
  const TemporaryFolder folder;
  convert({.model = golden("qwen3_moe"), .out = folder / "out", .format = WeightFormat::kFp8Block});
  const Config quantization = Config::read(folder / "out/config.json").object({"quantization_config"});
  EXPECT_EQ(quantization.string({"quant_method"}), "fp8");
  EXPECT_EQ(quantization.string({"fmt"}), "e4m3");
  EXPECT_EQ(quantization.string({"activation_scheme"}), "dynamic");
  EXPECT_EQ(quantization.integers({"weight_block_size"}), (std::vector<int64_t>{128, 128}));
  EXPECT_EQ(quantization.strings({"modules_to_not_convert"}),
            (std::vector<std::string>{"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate",
                                      "model.layers.1.mlp.gate", "model.layers.2.mlp.gate"}));
  EXPECT_FALSE(fs::exists(folder / "out/hf_quant_config.json"));
}

TEST(Convert, SaysWhatIsNvfp4ForReadersOfBothConfigFiles) {
  const TemporaryFolder folder;
  convert({.model = golden("qwen3_moe"), .out = folder / "out"});
  const Config in_config = Config::read(folder / "out/config.json").object({"quantization_config"});
  const Config separate = Config::read(folder / "out/hf_quant_config.json").object({"quantization"});
  EXPECT_EQ(separate.string({"quant_algo"}), "NVFP4");
  EXPECT_EQ(separate.strings({"exclude_modules"}), in_config.strings({"ignore"}));
  const Config weights = in_config.object({"config_groups"}).object({"group_0"}).object({"weights"});
  EXPECT_EQ(weights.integer({"group_size"}, 0, 1000), 16);
  EXPECT_EQ(weights.integer({"num_bits"}, 0, 1000), 4);
}

TEST(Convert, SplitsIntoShardsWithAnIndex) {
  const TemporaryFolder folder;
  constexpr uint64_t kLimit = 100'000;
  const ConvertSummary summary = convert(
      {.model = golden("qwen3_moe_v4config_sharded"), .out = folder / "out/", .max_shard_bytes = kLimit});
  EXPECT_GT(summary.shards, 2);
  const std::string count = std::to_string(summary.shards);
  EXPECT_TRUE(fs::exists(folder / ("out/model-00001-of-0000" + count + ".safetensors")));
  EXPECT_TRUE(fs::exists(folder / "out/model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(folder / "out/model.safetensors"));
  for (const std::string& name : names_in(folder / "out")) {
    if (!name.ends_with(".safetensors")) continue;
    uint64_t bytes = 0;
    const SafetensorsFile file = SafetensorsFile::open(folder / ("out/" + name));
    for (const Tensor& tensor : file.tensors()) bytes += tensor.bytes.size();
    EXPECT_LE(bytes, kLimit) << name;
  }
  expect_converted(Checkpoint::open(golden("qwen3_moe_v4config_sharded")), Checkpoint::open(folder / "out"));
}

TEST(Convert, AlignsEveryTensorToItsElements) {
  const TemporaryFolder folder;
  convert({.model = golden("qwen3_moe"), .out = folder / "out"});
  const SafetensorsFile file = SafetensorsFile::open(folder / "out/model.safetensors");
  for (const Tensor& tensor : file.tensors()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) % size_of(tensor.dtype), 0u) << tensor.name;
  }
}

TEST(Convert, CopiesTokenizerTemplateAndGenerationFilesOnly) {
  const TemporaryFolder folder;
  fs::copy(golden("qwen3_moe"), folder / "in");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "merges.txt"}) {
    write_file_atomically(folder / "in" / name, std::string("content of ") + name);
  }
  write_file_atomically(folder / "in" / "pytorch_model.bin", "weights");
  convert({.model = folder / "in", .out = folder / "out"});
  EXPECT_EQ(names_in(folder / "out"),
            (std::set<std::string>{"chat_template.jinja", "config.json", "generation_config.json",
                                   "hf_quant_config.json", "merges.txt", "model.safetensors",
                                   "tokenizer.json", "tokenizer_config.json"}));
  EXPECT_EQ(read_text_file(folder / "out/merges.txt"), "content of merges.txt");
}

TEST(Convert, GivesTheSameBytesWithAnyNumberOfThreads) {
  const TemporaryFolder folder;
  convert({.model = golden("qwen3_moe"), .out = folder / "one", .threads = 1});
  convert({.model = golden("qwen3_moe"), .out = folder / "four", .threads = 4});
  EXPECT_EQ(read_text_file(folder / "one/model.safetensors"),
            read_text_file(folder / "four/model.safetensors"));
}

TEST(Convert, ReportsProgressUpToTheWhole) {
  const TemporaryFolder folder;
  uint64_t last = 0, total = 0;
  ConvertOptions options{.model = golden("qwen3_moe"), .out = folder / "out"};
  options.progress = [&](uint64_t done_bytes, uint64_t total_bytes) {
    EXPECT_TRUE(done_bytes > last || done_bytes == 0);
    last = done_bytes;
    total = total_bytes;
  };
  convert(options);
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, Checkpoint::open(golden("qwen3_moe")).total_bytes());
}

TEST(Convert, TakesAnEmptyFolderAndRefusesAFullOne) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "out");
  convert({.model = golden("qwen3_moe"), .out = folder / "out"});
  const std::string before = read_text_file(folder / "out/config.json");
  expect_error(ErrorCode::kInvalidArgument, {"out", "exists"},
               [&] { convert({.model = golden("qwen3_moe"), .out = folder / "out"}); });
  EXPECT_EQ(read_text_file(folder / "out/config.json"), before);
  expect_error(ErrorCode::kInvalidArgument, {"config.json", "exists"},
               [&] { convert({.model = golden("qwen3_moe"), .out = folder / "out/config.json"}); });
}

TEST(Convert, LeavesNothingBehindWhenAWeightIsNotFinite) {
  const TemporaryFolder folder;
  std::vector<float> values(32, 0.5f);
  values[21] = NAN;
  TensorSet()
      .add("model.layers.0.mlp.experts.0.up_proj.weight", DType::kF32, {2, 16}, values)
      .write_checkpoint(folder / "in");
  expect_error(ErrorCode::kBadFile, {"experts.0.up_proj.weight", "element 21", "nan"},
               [&] { convert({.model = folder / "in", .out = folder / "out"}); });
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"in"});
}

TEST(Convert, RefusesWhatItCannotQuantise) {
  const TemporaryFolder folder;
  expect_error(ErrorCode::kUnsupported, {"quantised already", "modelopt"},
               [&] { convert({.model = golden("qwen3_moe_nvfp4"), .out = folder / "out"}); });
  expect_error(ErrorCode::kUnsupported, {"bf16", "nvfp4"}, [&] {
    convert({.model = golden("qwen3_moe"), .out = folder / "out", .format = WeightFormat::kBf16});
  });
  TensorSet().add<float>("a.weight", DType::kF32, {1}, {1}).write_checkpoint(folder / "dense");
  expect_error(ErrorCode::kUnsupported, {"mlp.experts.E"},
               [&] { convert({.model = folder / "dense", .out = folder / "out"}); });
  TensorSet()
      .add("l.mlp.experts.0.up_proj.weight", DType::kF32, {1, 24}, std::vector<float>(24))
      .write_checkpoint(folder / "odd");
  expect_error(ErrorCode::kUnsupported, {"experts.0.up_proj", "[1, 24]", "16"},
               [&] { convert({.model = folder / "odd", .out = folder / "out"}); });
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(ConvertPlan, RecognisesRoutedExpertsOnly) {
  EXPECT_TRUE(is_expert_weight("model.layers.0.mlp.experts.0.gate_proj.weight"));
  EXPECT_TRUE(is_expert_weight("model.language_model.layers.11.mlp.experts.255.down_proj.weight"));
  EXPECT_TRUE(is_expert_weight("model.layers.31.block_sparse_moe.experts.7.w2.weight"));
  for (const char* name :
       {"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.shared_expert.up_proj.weight",
        "model.layers.0.mlp.experts.up_proj.weight", "model.layers.0.mlp.experts.3.up_proj.bias",
        "model.layers.0.mlp.experts.3.q_proj.weight", "model.layers.0.mlp.experts.3.w2.weight",
        "model.layers.0.block_sparse_moe.experts.3.w4.weight", "model.layers.0.mlp.experts..up_proj.weight",
        "model.layers.0.mlp.experts.3.up_proj.weight_scale", ""}) {
    EXPECT_FALSE(is_expert_weight(name)) << name;
  }
}

TEST(ConvertPlan, RecognisesDenseProjectionsOfLayers) {
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.weight", "model.layers.61.self_attn.kv_a_proj_with_mqa.weight",
        "model.layers.0.mlp.gate_proj.weight", "model.layers.3.mlp.shared_experts.down_proj.weight",
        "model.language_model.layers.3.mlp.shared_expert.up_proj.weight",
        "model.language_model.layers.0.linear_attn.in_proj_qkv.weight",
        "model.language_model.layers.0.linear_attn.out_proj.weight"}) {
    EXPECT_TRUE(is_dense_projection(name)) << name;
  }
  for (const char* name :
       {"lm_head.weight", "model.embed_tokens.weight", "model.layers.0.mlp.gate.weight",
        "model.layers.0.mlp.shared_expert_gate.weight", "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.self_attn.q_norm.weight", "model.layers.0.mlp.experts.1.up_proj.weight",
        "model.layers.0.linear_attn.in_proj_b.weight", "model.layers.0.linear_attn.conv1d.weight",
        "model.visual.layers.0.self_attn.q_proj.weight", "q_proj.weight", ""}) {
    EXPECT_FALSE(is_dense_projection(name)) << name;
  }
}

TEST(ConvertPlan, GivesATensorLargerThanTheLimitAShardOfItsOwn) {
  const Checkpoint checkpoint = Checkpoint::open(golden("qwen3_moe"));
  const auto shards = plan_conversion(checkpoint, WeightFormat::kNvfp4, 1);
  EXPECT_EQ(shards.size(), checkpoint.tensors().size());
  for (const ConvertShard& shard : shards) EXPECT_EQ(shard.jobs.size(), 1u);
}

}  // namespace
}  // namespace sluice
