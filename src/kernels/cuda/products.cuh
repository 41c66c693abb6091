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

/// sum += factor * (chunk c of row r of the tile) . weights
template <int kRows>
__device__ void add_chunk(const ActivationTile<kRows>& tile, int c, const float (&weights)[kChunk],
                          float factor, float (&sums)[kRows]) {
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
    sums[r] = fmaf(part, factor, sums[r]);
  }
}

/// The bytes of a lane's chunks of a tile, on their way while x is loaded: chunks lane, lane + 32, ... below
/// `chunks`.
template <class Decode, int kCols>
struct ChunksAhead {
  typename Decode::Bytes bytes[kTileChunks / kWarp][kCols];
  float factors[kTileChunks / kWarp][kCols];

  __device__ void read(const WeightView (&w)[kCols], const int64_t (&row)[kCols], int64_t first, int chunks) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < kTileChunks / kWarp; ++i) {
      const int c = lane + kWarp * i;
      if (c >= chunks) break;
#pragma unroll
      for (int col = 0; col < kCols; ++col) {
        bytes[i][col] = Decode::read(w[col], row[col], first + c);
        factors[i][col] = Decode::factor(w[col], row[col], first + c);
      }
    }
  }

  template <int kRows>
  __device__ void add(const WeightView (&w)[kCols], const ActivationTile<kRows>& tile, int chunks,
                      float (&sums)[kCols][kRows]) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < kTileChunks / kWarp; ++i) {
      const int c = lane + kWarp * i;
      if (c >= chunks) break;
#pragma unroll
      for (int col = 0; col < kCols; ++col) {
        float weights[kChunk];
        Decode::values(w[col], bytes[i][col], weights);
        add_chunk(tile, c, weights, factors[i][col], sums[col]);
      }
    }
  }
};

/// The same for matrices whose rows begin anywhere.
template <class Decode, int kRows, int kCols>
__device__ void add_unaligned(const WeightView (&w)[kCols], const int64_t (&row)[kCols],
                              const ActivationTile<kRows>& tile, int64_t first, int chunks,
                              float (&sums)[kCols][kRows]) {
  for (int c = static_cast<int>(threadIdx.x) % kWarp; c < chunks; c += kWarp) {
#pragma unroll
    for (int col = 0; col < kCols; ++col) {
      float weights[kChunk];
      const int64_t chunk = first + c, left = w[col].k - chunk * kChunk;
      Decode::chunk(w[col], row[col], chunk, static_cast<int>(min(static_cast<int64_t>(kChunk), left)),
                    weights);
      add_chunk(tile, c, weights, Decode::factor(w[col], row[col], chunk), sums[col]);
    }
  }
}

/// sums[c][r] = x[r] . row row[c] of w[c], in every lane; all w have the same k. A lane takes every 32nd
/// chunk, in order, so a sum depends on its own row of activations and its weight row alone. x[r] may be null
/// (0). All threads of a block call it with the same x and k; a warp that is not `active` only helps to load
/// x. `before_x` is called once, when the first weights are on their way and nothing of x has been read.
template <class Decode, int kRows, int kCols, class BeforeX>
__device__ void block_dots(ActivationTile<kRows>& tile, const float* const* x, const WeightView (&w)[kCols],
                           const int64_t (&row)[kCols], bool active, float (&sums)[kCols][kRows],
                           BeforeX&& before_x) {
#pragma unroll
  for (int col = 0; col < kCols; ++col) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sums[col][r] = 0;
  }
  const int64_t k = w[0].k, all = ceil_div(k, kChunk);
  bool aligned = active;
#pragma unroll
  for (int col = 0; col < kCols; ++col) aligned = aligned && w[col].aligned;
  for (int64_t first = 0; first < all; first += kTileChunks) {
    const int chunks = static_cast<int>(min(static_cast<int64_t>(kTileChunks), all - first));
    ChunksAhead<Decode, kCols> ahead;
    if (aligned) ahead.read(w, row, first, chunks);
    if (first == 0) before_x();
    tile.load(x, first * kChunk, k, w[0].bf16);
    if (aligned) {
      ahead.add(w, tile, chunks, sums);
    } else if (active) {
      add_unaligned<Decode>(w, row, tile, first, chunks, sums);
    }
  }
#pragma unroll
  for (int col = 0; col < kCols; ++col) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sums[col][r] = warp_sum(sums[col][r]) * w[col].sum_factor();
  }
}

}  // namespace sluice::cuda
