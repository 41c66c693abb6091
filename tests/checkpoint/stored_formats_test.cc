// FP8, MXFP4 and compressed-tensors' NVFP4 bit by bit, and experts packed into one tensor.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/expect_error.h"
#include "base/scalar.h"
#include "checkpoint/make_checkpoint.h"
#include "checkpoint/weights.h"

namespace sluice {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TemporaryFolder;
using testing::TensorSet;

/// A checkpoint of `set` in a folder of its own.
struct Stored {
  explicit Stored(const TensorSet& set) { set.write_checkpoint(folder.path()); }
  TemporaryFolder folder;
  Checkpoint open() const { return Checkpoint::open(folder.path()); }
};

void expect_refused(const TensorSet& set, ErrorCode code, const std::vector<std::string>& parts, int64_t n,
                    int64_t k) {
  const Stored stored(set);
  const Checkpoint checkpoint = stored.open();
  expect_error(code, parts, [&] {
    const StoredMatrix matrix = find_matrix(checkpoint, "m", n, k);
    to_f32(matrix);
  });
}

/// 130 x 300 codes that differ by row and column.
constexpr int64_t kRows = 130, kColumns = 300;
std::vector<uint8_t> fp8_codes() {
  std::vector<uint8_t> codes(kRows * kColumns);
  for (size_t i = 0; i < codes.size(); ++i) {
    const auto code = static_cast<uint8_t>(i * 7 + i / kColumns);
    codes[i] = (code & 0x7f) == 0x7f ? 0x30 : code;
  }
  return codes;
}

TensorSet fp8_set() {
  TensorSet set;
  set.add("m.weight", DType::kF8E4m3, {kRows, kColumns}, fp8_codes());
  return set;
}

template <class ScaleOf>
void expect_fp8(const TensorSet& set, WeightFormat format, ScaleOf scale_of) {
  const Stored stored(set);
  const Checkpoint checkpoint = stored.open();
  const StoredMatrix matrix = find_matrix(checkpoint, "m", kRows, kColumns);
  EXPECT_EQ(matrix.format, format);
  const std::vector<float> values = to_f32(matrix);
  const std::vector<uint8_t> codes = fp8_codes();
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const auto i = static_cast<size_t>(r * kColumns + c);
      ASSERT_EQ(values[i], e4m3_to_f32(codes[i]) * scale_of(r, c)) << r << ", " << c;
    }
  }
}

TEST(Fp8, HasAScaleForEachBlockWithRaggedEdges) {
  // 2 x 3 blocks: the last row of blocks has 2 rows, the last column of blocks 44 columns.
  const std::vector<float> scales = {0.5f, 0.25f, 3.0f, 1.0f, 0.125f, 7.0f};
  const auto scale_of = [&](int64_t r, int64_t c) {
    return scales[static_cast<size_t>(r / 128 * 3 + c / 128)];
  };
  for (const std::string name : {"m.weight_scale_inv", "m.weight_scale"}) {
    TensorSet set = fp8_set();
    set.add(name, DType::kF32, {2, 3}, scales);
    expect_fp8(set, WeightFormat::kFp8Block, scale_of);
    std::vector<uint16_t> halves;
    for (const float scale : scales) halves.push_back(f32_to_bf16(scale));
    set.add(name, DType::kBf16, {2, 3}, halves);
    expect_fp8(set, WeightFormat::kFp8Block, scale_of);
  }
}

TEST(Fp8, TakesScalesThatArePowersOfTwo) {
  TensorSet set = fp8_set();
  set.add<uint8_t>("m.weight_scale_inv", DType::kF8E8m0, {2, 3}, {127, 126, 128, 127, 120, 130});
  const std::vector<float> scales = {1, 0.5, 2, 1, 0x1p-7, 8};
  expect_fp8(set, WeightFormat::kFp8Block,
             [&](int64_t r, int64_t c) { return scales[static_cast<size_t>(r / 128 * 3 + c / 128)]; });
}

TEST(Fp8, HasAScaleForTheMatrixOrForEachRow) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, std::vector<int64_t>{1}}) {
    TensorSet set = fp8_set();
    set.add<float>("m.weight_scale", DType::kF32, shape, {0.3f})
        .add<float>("m.input_scale", DType::kF32, {}, {9});
    expect_fp8(set, WeightFormat::kFp8Row, [](int64_t, int64_t) { return 0.3f; });
  }
  std::vector<float> rows(kRows);
  std::iota(rows.begin(), rows.end(), 1.0f);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{kRows}, std::vector<int64_t>{kRows, 1}}) {
    TensorSet set = fp8_set();
    set.add("m.weight_scale", DType::kF32, shape, rows);
    expect_fp8(set, WeightFormat::kFp8Row, [](int64_t r, int64_t) { return static_cast<float>(r + 1); });
  }
}

TEST(Fp8, RefusesScalesThatAreMissingMisshapenOrNoNumbers) {
  expect_refused(fp8_set(), ErrorCode::kNotFound, {"'m.weight'", "m.weight_scale_inv", "m.weight_scale"},
                 kRows, kColumns);
  TensorSet set = fp8_set();
  set.add<float>("m.weight_scale_inv", DType::kF32, {1, 1}, {1});
  expect_refused(set, ErrorCode::kBadFile,
                 {"'m.weight_scale_inv'", "[1, 1]", "[130, 300]", "[130, 1]", "[2, 3]"}, kRows, kColumns);
  set.add<int32_t>("m.weight_scale_inv", DType::kI32, {2, 3}, std::vector<int32_t>(6));
  expect_refused(set, ErrorCode::kBadFile, {"'m.weight_scale_inv'", "I32", "F32"}, kRows, kColumns);
  for (const float bad : {-1.0f, INFINITY, NAN}) {
    set.add<float>("m.weight_scale_inv", DType::kF32, {2, 3}, {1, 1, 1, 1, bad, 1});
    expect_refused(set, ErrorCode::kBadFile, {"'m.weight_scale_inv'", "finite"}, kRows, kColumns);
  }
}

/// The 16 codes in order, twice over: 1 x 32.
const std::vector<uint8_t> kAllCodes = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,
                                        0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};

std::vector<float> all_values(float first, float second) {
  std::vector<float> values;
  for (const float value : kE2m1Values) values.push_back(value * first);
  for (const float value : kE2m1Values) values.push_back(value * second);
  return values;
}

TEST(CompressedTensors, DividesNvfp4ByItsGlobalScale) {
  TensorSet set;
  set.add("m.weight_packed", DType::kU8, {1, 16}, kAllCodes)
      .add<uint8_t>("m.weight_scale", DType::kF8E4m3, {1, 2}, {0x38, 0x40})
      .add<float>("m.weight_global_scale", DType::kF32, {1}, {8})
      .add<float>("m.input_global_scale", DType::kF32, {1}, {99});
  const Stored stored(set);
  const Checkpoint checkpoint = stored.open();
  const StoredMatrix matrix = find_matrix(checkpoint, "m", 1, 32);
  EXPECT_EQ(matrix.format, WeightFormat::kNvfp4);
  EXPECT_EQ(matrix.global, 0.125f);
  EXPECT_EQ(to_f32(matrix), all_values(0.125f, 0.25f));

  set.add<float>("m.weight_global_scale", DType::kF32, {1}, {0});
  expect_refused(set, ErrorCode::kBadFile, {"'m.weight_global_scale'", "0"}, 1, 32);
  set.remove("m.weight_global_scale");
  expect_refused(set, ErrorCode::kNotFound, {"'m.weight_global_scale'"}, 1, 32);
  set.remove("m.weight_scale");
  expect_refused(set, ErrorCode::kNotFound, {"m.weight_packed", "m.weight_scale"}, 1, 32);
}

TEST(Mxfp4, ScalesThirtyTwoColumnsByAPowerOfTwo) {
  for (const std::string name : {"m.weight", "m.weight_packed"}) {
    TensorSet set;
    set.add(name, DType::kU8, {1, 16}, kAllCodes).add<uint8_t>("m.weight_scale", DType::kU8, {1, 1}, {125});
    const Stored stored(set);
    const Checkpoint checkpoint = stored.open();
    const StoredMatrix matrix = find_matrix(checkpoint, "m", 1, 32);
    EXPECT_EQ(matrix.format, WeightFormat::kMxfp4);
    EXPECT_EQ(to_f32(matrix), all_values(0.25f, 0.25f));
    expect_refused(set, ErrorCode::kUnsupported, {"'m'", "48", "32"}, 1, 48);
  }
}

std::vector<std::byte> row_of(const StoredExperts& experts, int64_t expert) {
  std::vector<std::byte> row(experts.layout().row_bytes, std::byte{0xee});
  std::array<float, kScalarsPerExpert> scalars{};
  experts.read_row(expert, row, scalars);
  return row;
}

TEST(PackedExperts, GiveTheRowsOfTheSameExpertsOneByOne) {
  constexpr int64_t kExperts = 3, kHidden = 6, kWide = 4;
  std::vector<uint16_t> both(kExperts * 2 * kWide * kHidden), down(kExperts * kHidden * kWide);
  std::iota(both.begin(), both.end(), uint16_t{1});
  std::iota(down.begin(), down.end(), uint16_t{1000});
  TensorSet packed, single;
  packed.add("e.gate_up_proj", DType::kBf16, {kExperts, 2 * kWide, kHidden}, both)
      .add("e.down_proj", DType::kBf16, {kExperts, kHidden, kWide}, down);
  constexpr int64_t kHalf = kWide * kHidden;
  const auto part = [](const std::vector<uint16_t>& all, int64_t first) {
    return std::vector<uint16_t>(all.begin() + first, all.begin() + first + kHalf);
  };
  for (int64_t e = 0; e < kExperts; ++e) {
    const std::string name = "e." + std::to_string(e) + ".";
    single.add(name + "gate_proj.weight", DType::kBf16, {kWide, kHidden}, part(both, 2 * e * kHalf))
        .add(name + "up_proj.weight", DType::kBf16, {kWide, kHidden}, part(both, (2 * e + 1) * kHalf))
        .add(name + "down_proj.weight", DType::kBf16, {kHidden, kWide}, part(down, e * kHalf));
  }
  const Stored a(packed), b(single);
  const Checkpoint one = a.open(), other = b.open();
  const auto first = StoredExperts::find(one, "e", kExperts, kHidden, kWide);
  const auto second = StoredExperts::find(other, "e", kExperts, kHidden, kWide);
  EXPECT_EQ(first.layout(), second.layout());
  for (int64_t e = 0; e < kExperts; ++e) EXPECT_TRUE(row_of(first, e) == row_of(second, e)) << e;
}

TEST(PackedExperts, TakeAlternatingRowsOfMxfp4Apart) {
  // Hidden 32, intermediate 32, 2 experts; each row of 16 bytes is filled with its own number.
  constexpr int64_t kExperts = 2, kSize = 32;
  TensorSet set;
  const auto rows = [](int64_t count, size_t row_bytes) {
    std::vector<uint8_t> bytes;
    for (int64_t r = 0; r < count; ++r) bytes.insert(bytes.end(), row_bytes, static_cast<uint8_t>(r));
    return bytes;
  };
  set.add("e.gate_up_proj_blocks", DType::kU8, {kExperts, 2 * kSize, 1, 16}, rows(kExperts * 2 * kSize, 16))
      .add("e.gate_up_proj_scales", DType::kU8, {kExperts, 2 * kSize, 1}, rows(kExperts * 2 * kSize, 1))
      .add("e.down_proj_blocks", DType::kU8, {kExperts, kSize, 1, 16}, rows(kExperts * kSize, 16))
      .add("e.down_proj_scales", DType::kU8, {kExperts, kSize, 1}, rows(kExperts * kSize, 1));
  const Stored stored(set);
  const Checkpoint checkpoint = stored.open();
  const auto experts = StoredExperts::find(checkpoint, "e", kExperts, kSize, kSize);
  const RowLayout& layout = experts.layout();
  EXPECT_EQ(layout, row_layout(WeightFormat::kMxfp4, kSize, kSize));
  for (int64_t e = 0; e < kExperts; ++e) {
    const std::vector<std::byte> row = row_of(experts, e);
    const auto at = [&](size_t offset) { return static_cast<int>(row[offset]); };
    for (int64_t r = 0; r < kSize; ++r) {
      const auto i = static_cast<size_t>(r);
      const auto gate =
          static_cast<int>(e * 2 * kSize + 2 * r);  // even rows; odd ones are the up projection's
      EXPECT_EQ(at(layout.gate_up.offset + 16 * i), gate);
      EXPECT_EQ(at(layout.gate_up.offset + 16 * (kSize + i)), gate + 1);
      EXPECT_EQ(at(layout.gate_up_scale.offset + i), gate);
      EXPECT_EQ(at(layout.gate_up_scale.offset + kSize + i), gate + 1);
      EXPECT_EQ(at(layout.down.offset + 16 * i), static_cast<int>(e * kSize + r));
      EXPECT_EQ(at(layout.down_scale.offset + i), static_cast<int>(e * kSize + r));
    }
  }
}

TEST(PackedExperts, CutBlocksOfFp8BetweenGateAndUp) {
  constexpr int64_t kSize = 128;
  TensorSet set;
  set.add("e.gate_up_proj", DType::kF8E4m3, {1, 2 * kSize, kSize},
          std::vector<uint8_t>(2 * kSize * kSize, 0x38))
      .add<float>("e.gate_up_proj_scale_inv", DType::kF32, {1, 2, 1}, {2, 3})
      .add("e.down_proj", DType::kF8E4m3, {1, kSize, kSize}, std::vector<uint8_t>(kSize * kSize, 0x38))
      .add<float>("e.down_proj_scale_inv", DType::kF32, {1, 1, 1}, {5});
  const Stored stored(set);
  const Checkpoint checkpoint = stored.open();
  const auto experts = StoredExperts::find(checkpoint, "e", 1, kSize, kSize);
  const std::vector<std::byte> row = row_of(experts, 0);
  const auto scale = [&](size_t offset) {
    float value = 0;
    std::memcpy(&value, row.data() + offset, sizeof value);
    return value;
  };
  EXPECT_EQ(scale(experts.layout().gate_up_scale.offset), 2);
  EXPECT_EQ(scale(experts.layout().gate_up_scale.offset + 4), 3);
  EXPECT_EQ(scale(experts.layout().down_scale.offset), 5);
}

TEST(PackedExperts, RefuseShapesAndFormatsThatDoNotFit) {
  TensorSet set;
  set.add("e.gate_up_proj", DType::kBf16, {2, 6, 8}, std::vector<uint16_t>(96))  // [E, H, 2I]
      .add("e.down_proj", DType::kF32, {2, 6, 4}, std::vector<float>(48));
  const Stored stored(set);
  const Checkpoint checkpoint = stored.open();
  expect_error(ErrorCode::kBadFile, {"'e.gate_up_proj'", "[2, 6, 8]", "[2, 8, 6]"},
               [&] { StoredExperts::find(checkpoint, "e", 2, 6, 4); });
  set.add("e.gate_up_proj", DType::kBf16, {2, 8, 6}, std::vector<uint16_t>(96));
  const Stored mixed(set);
  const Checkpoint other = mixed.open();
  expect_error(ErrorCode::kUnsupported, {"'e.down_proj'", "f32", "bf16"},
               [&] { StoredExperts::find(other, "e", 2, 6, 4); });
}

}  // namespace
}  // namespace sluice
