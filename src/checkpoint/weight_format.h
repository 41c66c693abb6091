// How the numbers of a weight matrix are stored, and what they decode to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

/// The formats of a matrix [n, k], with their scales as they lie in memory here:
/// kFp8Block: e4m3 [n, k]; an f32 scale for each block of 128 x 128, [ceil(n / 128), ceil(k / 128)].
/// kFp8Row: e4m3 [n, k]; an f32 scale for each row [n].
/// kNvfp4: u8 [n, k/2] e2m1 codes, low nibble = even column; e4m3 scale for 16 columns [n, k/16]; one f32
/// global.
/// kMxfp4: codes as kNvfp4; e8m0 scale for 32 columns [n, k/32]. (OCP Microscaling Formats, 2023.)
enum class WeightFormat { kF32, kF16, kBf16, kFp8Block, kFp8Row, kNvfp4, kMxfp4 };
std::string_view name_of(WeightFormat format);

inline constexpr int64_t kFp8BlockSize = 128;  // rows and columns that share a scale
inline constexpr int64_t kNvfp4Group = 16, kMxfp4Group = 32;

/// The columns that a matrix of this format must be a multiple of.
int64_t column_multiple(WeightFormat format);
/// Bytes of the numbers of [n, k] without scales; k must suit the format.
size_t weight_bytes(WeightFormat format, int64_t n, int64_t k);
/// Bytes of the scales of [n, k]; 0 where the format has none.
size_t scale_bytes(WeightFormat format, int64_t n, int64_t k);

/// A weight matrix [n, k] in memory, rows contiguous, bytes not necessarily aligned.
struct EncodedMatrix {
  WeightFormat format = WeightFormat::kF32;
  int64_t n = 0, k = 0;
  const void* data = nullptr;   // weight_bytes(format, n, k)
  const void* scale = nullptr;  // scale_bytes(format, n, k), null where the format has none
  float global = 1.0f;          // multiplies every value; 1 where unused
};

/// One row as f32 [k]. Each product of a code and its scale is rounded to f32 once, after scale and global.
void decode_row(const EncodedMatrix& matrix, int64_t row, float* values);

}  // namespace sluice
