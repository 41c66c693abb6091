// Element types and tensors as f32.
#include "checkpoint/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/expect_error.h"

namespace sluice {
namespace {

// A tensor whose bytes start one byte off any alignment, as in a file with an odd header.
struct Misaligned {
  explicit Misaligned(DType dtype, const std::vector<uint8_t>& bytes) : storage(bytes.size() + 1) {
    std::memcpy(storage.data() + 1, bytes.data(), bytes.size());
    tensor.name = "w";
    tensor.file = "a.safetensors";
    tensor.dtype = dtype;
    tensor.bytes = std::span(storage).subspan(1);
    tensor.shape = {tensor.elements()};
  }
  std::vector<std::byte> storage;
  Tensor tensor;
};

TEST(DType, NamesAndSizesAreThoseOfTheFormat) {
  const std::vector<std::tuple<DType, std::string, size_t>> expected = {
      {DType::kF64, "F64", 8},        {DType::kF32, "F32", 4},        {DType::kF16, "F16", 2},
      {DType::kBf16, "BF16", 2},      {DType::kF8E4m3, "F8_E4M3", 1}, {DType::kF8E5m2, "F8_E5M2", 1},
      {DType::kF8E8m0, "F8_E8M0", 1}, {DType::kI64, "I64", 8},        {DType::kI32, "I32", 4},
      {DType::kI16, "I16", 2},        {DType::kI8, "I8", 1},          {DType::kU64, "U64", 8},
      {DType::kU32, "U32", 4},        {DType::kU16, "U16", 2},        {DType::kU8, "U8", 1},
      {DType::kBool, "BOOL", 1}};
  for (const auto& [type, name, bytes] : expected) {
    EXPECT_EQ(name_of(type), name);
    EXPECT_EQ(size_of(type), bytes) << name;
    EXPECT_EQ(dtype_from_name(name), type) << name;
  }
  EXPECT_EQ(dtype_from_name("bf16"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(Tensor, FormatsItsShape) {
  EXPECT_EQ(format_shape(std::vector<int64_t>{4096, 256}), "[4096, 256]");
  EXPECT_EQ(format_shape({}), "[]");
}

TEST(Tensor, DecodesF32FromUnalignedBytes) {
  const Misaligned data(DType::kF32, {0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x20, 0xc1});
  EXPECT_EQ(to_f32(data.tensor), (std::vector<float>{1.0f, -10.0f}));
}

TEST(Tensor, DecodesBf16) {
  const Misaligned data(DType::kBf16, {0x80, 0x3f, 0x20, 0xc1, 0x01, 0x00});
  EXPECT_EQ(to_f32(data.tensor), (std::vector<float>{1.0f, -10.0f, std::ldexp(1.0f, -133)}));
}

TEST(Tensor, DecodesF16) {
  const Misaligned data(DType::kF16, {0x00, 0x3c, 0x00, 0xc9, 0x01, 0x00, 0xff, 0x7b});
  EXPECT_EQ(to_f32(data.tensor), (std::vector<float>{1.0f, -10.0f, std::ldexp(1.0f, -24), 65504.0f}));
}

TEST(Tensor, RefusesToDecodeOtherTypesByName) {
  const Misaligned data(DType::kU8, {1, 2});
  testing::expect_error(ErrorCode::kUnsupported, {"a.safetensors", "'w'", "U8"},
                        [&] { to_f32(data.tensor); });
}

}  // namespace
}  // namespace sluice
