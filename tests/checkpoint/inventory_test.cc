// Sorting tensors into kinds.
#include "checkpoint/inventory.h"

#include <gtest/gtest.h>

#include "checkpoint/make_checkpoint.h"

namespace sluice {
namespace {

TEST(TensorKind, FollowsFromTheName) {
  const std::vector<std::pair<std::string, TensorKind>> expected = {
      {"model.layers.0.mlp.experts.3.gate_proj.weight", TensorKind::kExperts},
      {"model.layers.0.mlp.experts.gate_up_proj", TensorKind::kExperts},
      {"model.layers.0.block_sparse_moe.experts.1.w2.weight", TensorKind::kExperts},
      {"model.layers.0.mlp.gate.weight", TensorKind::kRouter},
      {"model.layers.0.mlp.gate.e_score_correction_bias", TensorKind::kRouter},
      {"model.layers.0.mlp.router.weight", TensorKind::kRouter},
      {"model.layers.0.mlp.shared_expert.up_proj.weight", TensorKind::kMlp},
      {"model.layers.0.mlp.shared_expert_gate.weight", TensorKind::kMlp},
      {"model.layers.0.mlp.gate_proj.weight", TensorKind::kMlp},
      {"model.layers.0.self_attn.q_proj.weight", TensorKind::kAttention},
      {"model.layers.0.linear_attn.in_proj_qkvz.weight", TensorKind::kAttention},
      {"model.layers.0.self_attn.q_norm.weight", TensorKind::kNorms},
      {"model.layers.0.input_layernorm.weight", TensorKind::kNorms},
      {"model.norm.weight", TensorKind::kNorms},
      {"model.embed_tokens.weight", TensorKind::kEmbeddings},
      {"lm_head.weight", TensorKind::kEmbeddings},
      {"model.visual.blocks.0.attn.qkv.weight", TensorKind::kOther},
      {"mtp.layers.0.mlp.experts.0.up_proj.weight", TensorKind::kOther},
      {"something", TensorKind::kOther}};
  for (const auto& [name, kind] : expected) EXPECT_EQ(name_of(kind_of(name)), name_of(kind)) << name;
}

TEST(Inventory, CountsTensorsAndBytesByKindAndType) {
  const Checkpoint checkpoint = Checkpoint::open(testing::golden("qwen3_moe"));
  const Inventory inventory = take_inventory(checkpoint);
  EXPECT_EQ(inventory.total.tensors, 102);
  EXPECT_EQ(inventory.total.bytes, checkpoint.total_bytes());
  EXPECT_EQ(inventory.by_kind.at(TensorKind::kExperts).tensors, 3 * 8 * 3);
  EXPECT_EQ(inventory.by_kind.at(TensorKind::kExperts).bytes, 3u * 8 * 3 * 64 * 48 * 2);
  EXPECT_EQ(inventory.by_kind.at(TensorKind::kRouter).tensors, 3);
  EXPECT_EQ(inventory.by_type.at(DType::kBf16).tensors, 102);
  EXPECT_EQ(inventory.expert_formats, std::set<std::string>{"bf16"});
  EXPECT_EQ(inventory.moe_layers, 3);
  uint64_t sum = 0;
  for (const auto& [kind, amount] : inventory.by_kind) sum += amount.bytes;
  EXPECT_EQ(sum, inventory.total.bytes);
}

TEST(Inventory, RecognisesQuantisedExpertsAndDenseLayers) {
  const Inventory quantised = take_inventory(Checkpoint::open(testing::golden("qwen3_moe_nvfp4")));
  EXPECT_EQ(quantised.expert_formats, std::set<std::string>{"nvfp4"});
  const Inventory mixed = take_inventory(Checkpoint::open(testing::golden("qwen3_moe_mixed_dense")));
  EXPECT_GT(mixed.by_kind.at(TensorKind::kMlp).tensors, 0);
  EXPECT_LT(mixed.moe_layers, 5);
}

TEST(Inventory, NamesTheFormatOfEachLayersExperts) {
  const testing::TemporaryFolder folder;
  testing::TensorSet()
      .add<uint8_t>("l.layers.0.mlp.experts.0.up_proj.weight", DType::kF8E4m3, {1, 2}, {0, 0})
      .add<float>("l.layers.0.mlp.experts.0.up_proj.weight_scale_inv", DType::kF32, {1, 1}, {1})
      .add<uint8_t>("l.layers.1.mlp.experts.0.up_proj.weight", DType::kF8E4m3, {1, 2}, {0, 0})
      .add<float>("l.layers.1.mlp.experts.0.up_proj.weight_scale", DType::kF32, {}, {1})
      .add<uint8_t>("l.layers.2.mlp.experts.0.up_proj.weight_packed", DType::kU8, {1, 2}, {0, 0})
      .add<uint8_t>("l.layers.2.mlp.experts.0.up_proj.weight_scale", DType::kF8E4m3, {1}, {0})
      .add<float>("l.layers.2.mlp.experts.0.up_proj.weight_global_scale", DType::kF32, {1}, {1})
      .add<uint8_t>("l.layers.3.mlp.experts.down_proj_blocks", DType::kU8, {1, 2}, {0, 0})
      .add<uint8_t>("l.layers.3.mlp.experts.down_proj_scales", DType::kU8, {1}, {0})
      .add<uint16_t>("l.layers.4.mlp.experts.gate_up_proj", DType::kBf16, {1, 1, 1}, {0})
      .add<uint16_t>("l.layers.5.block_sparse_moe.experts.0.w1.weight", DType::kF16, {1, 1}, {0})
      .write_checkpoint(folder.path());
  const Inventory inventory = take_inventory(Checkpoint::open(folder.path()));
  EXPECT_EQ(inventory.expert_formats,
            (std::set<std::string>{"bf16", "f16", "fp8", "fp8_block", "mxfp4", "nvfp4"}));
  EXPECT_EQ(inventory.moe_layers, 6);
  EXPECT_EQ(inventory.by_kind.at(TensorKind::kExperts).tensors, 11);
}

}  // namespace
}  // namespace sluice
