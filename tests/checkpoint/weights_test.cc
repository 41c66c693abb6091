// Weight formats bit by bit, and experts packed into rows.
#include "checkpoint/weights.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/expect_error.h"
#include "base/thread_pool.h"
#include "checkpoint/make_checkpoint.h"

namespace sluice {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TemporaryFolder;
using testing::TensorSet;

// A 1 x 32 NVFP4 matrix: first group the codes 0 to 15, second their reverse; scales 1 and 2; global 0.5.
TensorSet nvfp4_by_hand() {
  TensorSet set;
  set.add<uint8_t>("m.weight", DType::kU8, {1, 16},
                   {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,  // low nibble = even column
                    0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01});
  set.add<uint8_t>("m.weight_scale", DType::kF8E4m3, {1, 2}, {0x38, 0x40});
  set.add<float>("m.weight_scale_2", DType::kF32, {}, {0.5f});
  set.add<float>("m.input_scale", DType::kF32, {}, {77.0f});
  return set;
}

// find_matrix on `set` must fail.
void expect_refused(const TensorSet& set, ErrorCode code, const std::vector<std::string>& parts,
                    int64_t n = 1, int64_t k = 32) {
  const TemporaryFolder folder;
  set.write_checkpoint(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  expect_error(code, parts, [&] { find_matrix(checkpoint, "m", n, k); });
}

TEST(FindMatrix, DecodesNvfp4ByItsDefinition) {
  const TemporaryFolder folder;
  nvfp4_by_hand().write_checkpoint(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const StoredMatrix matrix = find_matrix(checkpoint, "m", 1, 32);
  EXPECT_EQ(matrix.format, WeightFormat::kNvfp4);
  EXPECT_EQ(matrix.n, 1);
  EXPECT_EQ(matrix.k, 32);
  EXPECT_EQ(matrix.global, 0.5f);
  const std::vector<float> codes = {0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6};
  std::vector<float> expected;
  for (const float value : codes) expected.push_back(value * 0.5f);
  expected.insert(expected.end(), codes.rbegin(), codes.rend());
  EXPECT_EQ(to_f32(matrix), expected);
}

TEST(FindMatrix, TakesAGlobalOfOneElementOrNone) {
  TensorSet set = nvfp4_by_hand();
  set.add<float>("m.weight_scale_2", DType::kF32, {1}, {0.25f});
  const TemporaryFolder folder;
  set.write_checkpoint(folder.path());
  EXPECT_EQ(find_matrix(Checkpoint::open(folder.path()), "m", 1, 32).global, 0.25f);
}

TEST(FindMatrix, TakesPlainFormatsFromTheTypeOfTheTensor) {
  const TemporaryFolder folder;
  TensorSet()
      .add<uint16_t>("a.weight", DType::kBf16, {1, 2}, {0x3f80, 0xc120})
      .add<uint16_t>("b.weight", DType::kF16, {1, 2}, {0x3c00, 0xc900})
      .add<float>("c.weight", DType::kF32, {1, 2}, {1.0f, -10.0f})
      .write_checkpoint(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const std::vector<std::pair<std::string, WeightFormat>> expected = {
      {"a", WeightFormat::kBf16}, {"b", WeightFormat::kF16}, {"c", WeightFormat::kF32}};
  for (const auto& [module, format] : expected) {
    const StoredMatrix matrix = find_matrix(checkpoint, module, 1, 2);
    EXPECT_EQ(matrix.format, format);
    EXPECT_EQ(matrix.scale.tensor, nullptr);
    EXPECT_EQ(matrix.global, 1.0f);
    EXPECT_EQ(to_f32(matrix), (std::vector<float>{1.0f, -10.0f})) << module;
  }
}

TEST(FindMatrix, RefusesBrokenNvfp4) {
  TensorSet set = nvfp4_by_hand();
  set.remove("m.weight_scale_2");
  expect_refused(set, ErrorCode::kNotFound, {"'m.weight_scale_2'"});

  set = nvfp4_by_hand();
  set.add<float>("m.weight_scale_2", DType::kF32, {2}, {1, 2});
  expect_refused(set, ErrorCode::kBadFile, {"'m.weight_scale_2'", "[2]"});
  for (const float bad : {-1.0f, INFINITY, NAN}) {
    set.add<float>("m.weight_scale_2", DType::kF32, {}, {bad});
    expect_refused(set, ErrorCode::kBadFile, {"'m.weight_scale_2'", "finite"});
  }
  set.add<uint16_t>("m.weight_scale_2", DType::kBf16, {}, {0x3f80});
  expect_refused(set, ErrorCode::kBadFile, {"'m.weight_scale_2'", "BF16", "F32"});

  set = nvfp4_by_hand();
  set.add<uint8_t>("m.weight_scale", DType::kU8, {1, 2}, {1, 2});
  expect_refused(set, ErrorCode::kBadFile, {"'m.weight_scale'", "U8", "F8_E4M3"});
  set.add<uint8_t>("m.weight_scale", DType::kF8E4m3, {2}, {1, 2});
  expect_refused(set, ErrorCode::kBadFile, {"'m.weight_scale'", "[2]", "[1, 2]"});

  expect_refused(nvfp4_by_hand(), ErrorCode::kBadFile, {"'m.weight'", "[1, 16]", "[2, 16]"}, 2, 32);
  expect_refused(nvfp4_by_hand(), ErrorCode::kUnsupported, {"'m'", "40", "16"}, 1, 40);
}

TEST(FindMatrix, RefusesOtherFormatsByName) {
  TensorSet set;
  expect_refused(set, ErrorCode::kNotFound, {"'m.weight'"});
  set.add<int32_t>("m.qweight", DType::kI32, {1}, {1});
  expect_refused(set, ErrorCode::kUnsupported, {"m.qweight", "GPTQ", "BF16"});
  set = TensorSet();
  set.add<int32_t>("m.weight_packed", DType::kI32, {1}, {1});
  expect_refused(set, ErrorCode::kUnsupported, {"m.weight_packed", "int4 pack-quantized", "NVFP4"});
  set = nvfp4_by_hand();
  set.add<uint16_t>("m.pre_quant_scale", DType::kBf16, {1}, {0x3f80});
  expect_refused(set, ErrorCode::kUnsupported, {"m.pre_quant_scale", "AWQ"});
  set = TensorSet();
  set.add<uint8_t>("m.weight", DType::kU8, {16, 1}, std::vector<uint8_t>(16));
  set.add<float>("m.weight.absmax", DType::kF32, {1}, {1});
  expect_refused(set, ErrorCode::kUnsupported, {"m.weight.absmax", "bitsandbytes"});
  set = TensorSet();
  set.add<uint8_t>("m.weight", DType::kF8E5m2, {1, 32}, std::vector<uint8_t>(32));
  expect_refused(set, ErrorCode::kUnsupported, {"'m.weight'", "F8_E5M2", "NVFP4"});
}

TEST(WeightFormat, CountsBytesOfNumbersAndScales) {
  EXPECT_EQ(weight_bytes(WeightFormat::kF32, 3, 32), 384u);
  EXPECT_EQ(weight_bytes(WeightFormat::kF16, 3, 32), 192u);
  EXPECT_EQ(weight_bytes(WeightFormat::kBf16, 3, 32), 192u);
  EXPECT_EQ(weight_bytes(WeightFormat::kNvfp4, 3, 32), 48u);
  EXPECT_EQ(scale_bytes(WeightFormat::kNvfp4, 3, 32), 6u);
  EXPECT_EQ(scale_bytes(WeightFormat::kBf16, 3, 32), 0u);
  EXPECT_EQ(weight_bytes(WeightFormat::kMxfp4, 3, 64), 96u);
  EXPECT_EQ(scale_bytes(WeightFormat::kMxfp4, 3, 64), 6u);
  EXPECT_EQ(weight_bytes(WeightFormat::kFp8Row, 3, 33), 99u);
  EXPECT_EQ(scale_bytes(WeightFormat::kFp8Row, 3, 33), 12u);
  EXPECT_EQ(weight_bytes(WeightFormat::kFp8Block, 129, 300), 38700u);
  EXPECT_EQ(scale_bytes(WeightFormat::kFp8Block, 129, 300), 24u);  // 2 x 3 blocks, ragged at both edges
}

TEST(RowLayout, PlacesPartsOnMultiplesOfSixteenWithoutOverlap) {
  for (const WeightFormat format :
       {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBf16, WeightFormat::kFp8Block,
        WeightFormat::kFp8Row, WeightFormat::kNvfp4, WeightFormat::kMxfp4}) {
    const RowLayout layout = row_layout(format, 96, 32);
    size_t position = 0;
    for (const RowLayout::Part& part :
         {layout.gate_up, layout.gate_up_scale, layout.down, layout.down_scale}) {
      EXPECT_EQ(part.offset % 16, 0u);
      EXPECT_GE(part.offset, position);
      EXPECT_LT(part.offset - position, 16u);
      position = part.offset + part.bytes;
    }
    EXPECT_EQ(layout.row_bytes, (position + 15) / 16 * 16);
    EXPECT_EQ(layout.gate_up.bytes, 2 * weight_bytes(format, 32, 96));
    EXPECT_EQ(layout.gate_up_scale.bytes, 2 * scale_bytes(format, 32, 96));
    EXPECT_EQ(layout.down_scale.bytes, scale_bytes(format, 96, 32));
  }
}

TEST(RowLayout, DiffersByFormatAndByShape) {
  EXPECT_EQ(row_layout(WeightFormat::kBf16, 48, 16), row_layout(WeightFormat::kBf16, 48, 16));
  EXPECT_FALSE(row_layout(WeightFormat::kBf16, 48, 16) == row_layout(WeightFormat::kF16, 48, 16));
  EXPECT_FALSE(row_layout(WeightFormat::kBf16, 48, 16) == row_layout(WeightFormat::kBf16, 16, 48));
}

// Two experts (hidden 48, intermediate 16) with patterned bytes in every part and a global of its own for
// each matrix.
TensorSet two_experts() {
  TensorSet set;
  uint8_t next = 1;
  const auto bytes = [&](size_t count) {
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = next = static_cast<uint8_t>(next * 37 + 11);
    return values;
  };
  for (const std::string expert : {"e.0.", "e.1."}) {
    float global = expert == "e.0." ? 1.0f : 4.0f;
    for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
      const int64_t n = part == "down_proj" ? 48 : 16, k = part == "down_proj" ? 16 : 48;
      set.add(expert + part + ".weight", DType::kU8, {n, k / 2}, bytes(static_cast<size_t>(n * k / 2)));
      set.add(expert + part + ".weight_scale", DType::kF8E4m3, {n, k / 16},
              bytes(static_cast<size_t>(n * k / 16)));
      set.add<float>(expert + part + ".weight_scale_2", DType::kF32, {}, {global});
      global += 1;
    }
  }
  return set;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(StoredExperts, PackGateUpAndDownWithTheirScalesIntoARow) {
  const TemporaryFolder folder;
  two_experts().write_checkpoint(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const StoredExperts experts = StoredExperts::find(checkpoint, "e", 2, 48, 16);
  EXPECT_EQ(experts.experts(), 2);
  const RowLayout& layout = experts.layout();
  EXPECT_EQ(layout, row_layout(WeightFormat::kNvfp4, 48, 16));
  for (int64_t expert = 0; expert < 2; ++expert) {
    std::vector<std::byte> row(layout.row_bytes, std::byte{0xee});
    std::array<float, kScalarsPerExpert> scalars{};
    experts.read_row(expert, row, scalars);
    const auto part = [&](const RowLayout::Part& p) {
      return text_of(std::span(row).subspan(p.offset, p.bytes));
    };
    const auto stored = [&](const std::string& name) {
      return text_of(checkpoint.get("e." + std::to_string(expert) + "." + name).bytes);
    };
    EXPECT_EQ(part(layout.gate_up), stored("gate_proj.weight") + stored("up_proj.weight"));
    EXPECT_EQ(part(layout.gate_up_scale), stored("gate_proj.weight_scale") + stored("up_proj.weight_scale"));
    EXPECT_EQ(part(layout.down), stored("down_proj.weight"));
    EXPECT_EQ(part(layout.down_scale), stored("down_proj.weight_scale"));
    const float first = expert == 0 ? 1.0f : 4.0f;
    EXPECT_EQ(scalars, (std::array<float, 3>{first, first + 1, first + 2}));
  }
}

TEST(StoredExperts, ZeroThePaddingOfARow) {
  // 2 * 5 * 3 and 3 * 5 numbers of two bytes: 4 and 2 bytes short of a multiple of 16.
  TensorSet set;
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
    const int64_t n = part == "down_proj" ? 3 : 5, k = part == "down_proj" ? 5 : 3;
    set.add("e.0." + part + ".weight", DType::kBf16, {n, k},
            std::vector<uint16_t>(static_cast<size_t>(n * k), 0xffff));
  }
  const TemporaryFolder folder;
  set.write_checkpoint(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const StoredExperts experts = StoredExperts::find(checkpoint, "e", 1, 3, 5);
  ASSERT_EQ(experts.layout().row_bytes, 96u);
  std::vector<std::byte> row(96, std::byte{0xee}), expected(96);
  std::array<float, kScalarsPerExpert> scalars{};
  experts.read_row(0, row, scalars);
  std::fill_n(expected.begin(), 60, std::byte{0xff});
  std::fill_n(expected.begin() + 64, 30, std::byte{0xff});
  EXPECT_EQ(row, expected);
  EXPECT_EQ(scalars, (std::array<float, 3>{1, 1, 1}));
}

TEST(StoredExperts, GiveTheSameRowsToManyThreads) {
  const Checkpoint checkpoint = Checkpoint::open(golden("qwen3_moe_nvfp4"));
  const StoredExperts experts = StoredExperts::find(checkpoint, "model.layers.1.mlp.experts", 16, 64, 48);
  const size_t row_bytes = experts.layout().row_bytes;
  std::vector<std::byte> alone(row_bytes), together(row_bytes * 16);
  std::vector<std::array<float, 3>> scalars(16);
  ThreadPool pool(4);
  pool.parallel_for(16, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto expert = static_cast<size_t>(i);
      experts.read_row(i, std::span(together).subspan(expert * row_bytes, row_bytes), scalars[expert]);
    }
  });
  for (size_t expert = 0; expert < 16; ++expert) {
    std::array<float, 3> expected{};
    experts.read_row(static_cast<int64_t>(expert), alone, expected);
    EXPECT_EQ(text_of(alone), text_of(std::span(together).subspan(expert * row_bytes, row_bytes)));
    EXPECT_EQ(scalars[expert], expected);
  }
}

TEST(StoredExperts, RefuseAMissingExpertByName) {
  const Checkpoint checkpoint = Checkpoint::open(golden("qwen3_moe"));
  expect_error(ErrorCode::kNotFound, {"model.layers.0.mlp.experts.8.gate_proj.weight"},
               [&] { StoredExperts::find(checkpoint, "model.layers.0.mlp.experts", 9, 64, 48); });
  expect_error(ErrorCode::kBadFile, {"experts.0.gate_proj.weight", "[48, 64]", "[32, 64]"},
               [&] { StoredExperts::find(checkpoint, "model.layers.0.mlp.experts", 8, 64, 32); });
}

TEST(StoredExperts, RefuseALayerOfTwoFormats) {
  TensorSet set = two_experts();
  set.add("e.1.up_proj.weight", DType::kBf16, {16, 48}, std::vector<uint16_t>(16 * 48));
  const TemporaryFolder folder;
  set.write_checkpoint(folder.path());
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  expect_error(ErrorCode::kUnsupported, {"'e.1.up_proj'", "bf16", "nvfp4"},
               [&] { StoredExperts::find(checkpoint, "e", 2, 48, 16); });
}

}  // namespace
}  // namespace sluice
