// The dot products that every matrix kernel is made of: a block keeps a piece of its rows of activations in
// shared memory, and each of its warps takes some weight rows through it.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/weights.cuh"

namespace sluice::cuda {

constexpr int kTile = 2048;  // values of a row of activations
constexpr int kTileChunks = kTile / kChunk;

/// A piece of kRows rows of activations. Quarter j of chunk c lies at [j][c], so that the lanes of a warp,
/// which take chunks one after the other, read words one after the other.
template <int kRows>
struct ActivationTile {
  float4 quarters[kRows][4][kTileChunks];

  /// Values [first, first + kTile) of the rows x, each [k]; 0 behind their ends and in rows that are null.
  /// All threads of the block.
  __device__ void load(const float* const* x, int64_t first, int64_t k, bool bf16) {
    __syncthreads();  // others may still read what was here
    constexpr int kQuarters = kTile / 4;
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kQuarters; i += static_cast<int>(blockDim.x)) {
      const int row = i / kQuarters, quarter = i % kQuarters;
      quarters[row][quarter % 4][quarter / 4] = quarter_of(x[row], first + 4 * quarter, k, bf16);
    }
    __syncthreads();
  }

 private:
  __device__ static float4 quarter_of(const float* x, int64_t at, int64_t k, bool bf16) {
    float4 q = {0, 0, 0, 0};
    if (x == nullptr || at >= k) return q;
    if (k % 4 == 0) {
      q = *reinterpret_cast<const float4*>(x + at);
    } else {
      q.x = x[at];
      if (at + 1 < k) q.y = x[at + 1];
      if (at + 2 < k) q.z = x[at + 2];
      if (at + 3 < k) q.w = x[at + 3];
    }
    if (bf16) {
      q = {rounded_to_bf16(q.x), rounded_to_bf16(q.y), rounded_to_bf16(q.z), rounded_to_bf16(q.w)};
    }
    return q;
  }
};

/// Adds this lane's part of a tile to sums[c][r]: every 32nd chunk, in order. So a sum depends on its own row
/// of activations and its weight row alone.
template <class Decode, bool kAligned, bool kWhole, int kRows, int kCols>
__device__ void add_chunks(const WeightView (&w)[kCols], const int64_t (&row)[kCols],
                           const ActivationTile<kRows>& tile, int64_t first, int chunks,
                           float (&sums)[kCols][kRows]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kTileChunks / kWarp; ++i) {
    const int c = lane + kWarp * i;
    if (!kWhole && c >= chunks) break;
    const int64_t chunk = first + c;
#pragma unroll
    for (int col = 0; col < kCols; ++col) {
      float weights[kChunk];
      const int count =
          kAligned ? kChunk : static_cast<int>(min(static_cast<int64_t>(kChunk), w[col].k - chunk * kChunk));
      Decode::template chunk<kAligned>(w[col], row[col], chunk, count, weights);
      const float factor = Decode::factor(w[col], row[col], chunk);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float part = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 x = tile.quarters[r][j][c];
          part = fmaf(x.x, weights[4 * j], part);
          part = fmaf(x.y, weights[4 * j + 1], part);
          part = fmaf(x.z, weights[4 * j + 2], part);
          part = fmaf(x.w, weights[4 * j + 3], part);
        }
        sums[col][r] = fmaf(part, factor, sums[col][r]);
      }
    }
  }
}

/// sums[c][r] = x[r] . row row[c] of w[c], in every lane; all w have the same k. x[r] may be null (0). All
/// threads of a block call it with the same x and k; a warp that is not `active` only helps to load x.
template <class Decode, int kRows, int kCols>
__device__ void block_dots(ActivationTile<kRows>& tile, const float* const* x, const WeightView (&w)[kCols],
                           const int64_t (&row)[kCols], bool active, float (&sums)[kCols][kRows]) {
#pragma unroll
  for (int col = 0; col < kCols; ++col) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sums[col][r] = 0;
  }
  const int64_t k = w[0].k, all = ceil_div(k, kChunk);
  bool aligned = true;
#pragma unroll
  for (int col = 0; col < kCols; ++col) aligned = aligned && w[col].aligned;
  for (int64_t first = 0; first < all; first += kTileChunks) {
    tile.load(x, first * kChunk, k, w[0].bf16);
    if (!active) continue;
    const int chunks = static_cast<int>(min(static_cast<int64_t>(kTileChunks), all - first));
    if (!aligned) {
      add_chunks<Decode, false, false>(w, row, tile, first, chunks, sums);
    } else if (chunks < kTileChunks) {
      add_chunks<Decode, true, false>(w, row, tile, first, chunks, sums);
    } else {
      add_chunks<Decode, true, true>(w, row, tile, first, chunks, sums);
    }
  }
#pragma unroll
  for (int col = 0; col < kCols; ++col) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sums[col][r] = warp_sum(sums[col][r]) * w[col].sum_factor();
  }
}

}  // namespace sluice::cuda
