// Causal attention of many rows over a KV cache in bf16, on tensor cores. Dao, "FlashAttention-2", 2023.
//
// A block takes 64 rows of a query head, a warp 16 of them, and goes through the positions in tiles of 64
// from 0 upwards. Queries and softmax weights are rounded to bf16 for the products; scores, sums and results
// are f32. Tiles that lie behind a row's own position change nothing of it, so its result does not depend on
// the rows beside it.
#include <cmath>

#include "base/error.h"
#include "kernels/cuda/prompt_attention.h"
#include "kernels/cuda/tensor_tile.cuh"

namespace sluice::cuda {
namespace {

constexpr int kRows = 64, kThreads = 128;
constexpr int kPositions = 64;  // of a tile

struct Call {
  const float* q;
  int64_t rows, heads;
  PositionOf position_of;
  float scale;  // of scores, in powers of two
  KvLayer cache;
  float* y;
};

/// Starts a copy of 16 bytes into shared memory; zeros where `valid` is false.
__device__ inline void copy_piece(uint4* to, const void* from, bool valid) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(valid ? 16 : 0));
}
__device__ inline void end_of_copies() { asm volatile("cp.async.commit_group;"); }
/// Waits for all but the newest `kLeft` groups of copies of this thread.
template <int kLeft>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft));
}

template <int kDim>
__device__ void copy_tile(const Bf16Rows<kDim>& tile, const __nv_bfloat16* from, int64_t begin, int64_t end) {
  constexpr int kRowPieces = kDim / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kPositions * kRowPieces; i += kThreads) {
    const int row = i / kRowPieces, piece = i % kRowPieces;
    const bool valid = begin + row < end;
    copy_piece(tile.piece(row, piece), from + (valid ? (begin + row) * kDim : 0) + 8 * piece, valid);
  }
  end_of_copies();
}

/// What a warp has of its 16 rows. A thread has rows lane / 4 and lane / 4 + 8, of each the same columns.
template <int kDim>
struct WarpRows {
  float values[kDim / 8][4];
  float highest[2], sum[2];

  __device__ WarpRows() {
#pragma unroll
    for (auto& four : values) four[0] = four[1] = four[2] = four[3] = 0;
    highest[0] = highest[1] = -INFINITY;
    sum[0] = sum[1] = 0;
  }

  /// Scores of a tile become weights; what was seen before is scaled to the new highest score.
  __device__ void soften(float (&scores)[kPositions / 8][4]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float most = highest[r];
#pragma unroll
      for (int j = 0; j < kPositions / 8; ++j)
        most = fmaxf(most, fmaxf(scores[j][2 * r], scores[j][2 * r + 1]));
#pragma unroll
      for (int step = 1; step < 4; step *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
      const float keep = exp2f(highest[r] - most);
      highest[r] = most;
      float added = 0;
#pragma unroll
      for (int j = 0; j < kPositions / 8; ++j) {
#pragma unroll
        for (int c = 2 * r; c < 2 * r + 2; ++c) {
          scores[j][c] = exp2f(scores[j][c] - most);
          added += scores[j][c];
        }
      }
      sum[r] = sum[r] * keep + added;  // of this thread's columns
#pragma unroll
      for (int j = 0; j < kDim / 8; ++j) {
        values[j][2 * r] *= keep;
        values[j][2 * r + 1] *= keep;
      }
    }
  }

  __device__ void add(const float (&weights)[kPositions / 8][4], const Bf16Rows<kDim>& tile) {
#pragma unroll
    for (int p = 0; p < kPositions / 16; ++p) {
      const uint32_t a[4] = {two_bf16(weights[2 * p][0], weights[2 * p][1]),
                             two_bf16(weights[2 * p][2], weights[2 * p][3]),
                             two_bf16(weights[2 * p + 1][0], weights[2 * p + 1][1]),
                             two_bf16(weights[2 * p + 1][2], weights[2 * p + 1][3])};
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d) {
        uint32_t b[4];
        load_transposed(b, tile.rows_16(16 * p, 2 * d));
        multiply_add(values[2 * d], a, b[0], b[1]);
        multiply_add(values[2 * d + 1], a, b[2], b[3]);
      }
    }
  }
};

template <int kDim>
__global__ void __launch_bounds__(kThreads) prompt_attention_kernel(const __grid_constant__ Call c) {
  extern __shared__ uint4 shared[];
  __shared__ int64_t last_of_row[kRows];
  constexpr int kRowPieces = kDim / 8;
  const Bf16Rows<kDim> queries{shared}, keys{shared + kRows * kRowPieces},
      values{shared + (kRows + kPositions) * kRowPieces};
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, first_row = thread / kWarp * 16;
  // Long rows first.
  const int64_t first = static_cast<int64_t>(gridDim.y - 1 - blockIdx.y) * kRows, head = blockIdx.x;
  const int64_t kv_head = head / (c.heads / c.cache.kv_heads);
  const auto* all_keys = c.cache.key<const __nv_bfloat16>(kv_head, 0);
  const auto* all_values = c.cache.value<const __nv_bfloat16>(kv_head, 0);
  let_next_begin();
  wait_for_previous();
  if (thread < kRows) last_of_row[thread] = first + thread < c.rows ? c.position_of(first + thread) : 0;
  for (int i = thread; i < kRows * kRowPieces; i += kThreads) {
    const int row = i / kRowPieces, piece = i % kRowPieces;
    float4 low = {0, 0, 0, 0}, high = low;
    if (first + row < c.rows) {
      const auto* q =
          reinterpret_cast<const float4*>(c.q + ((first + row) * c.heads + head) * kDim) + 2 * piece;
      low = q[0];
      high = q[1];
    }
    *queries.piece(row, piece) = {two_bf16(low.x, low.y), two_bf16(low.z, low.w), two_bf16(high.x, high.y),
                                  two_bf16(high.z, high.w)};
  }
  __syncthreads();
  int64_t end = 0;
  for (int r = 0; r < kRows; ++r) end = max(end, last_of_row[r] + 1);
  const int64_t last[2] = {last_of_row[first_row + lane / 4], last_of_row[first_row + lane / 4 + 8]};

  WarpRows<kDim> rows;
  copy_tile(keys, all_keys, 0, end);
  copy_tile(values, all_values, 0, end);
  for (int64_t begin = 0; begin < end; begin += kPositions) {
    wait_for_copies<1>();
    __syncthreads();
    float scores[kPositions / 8][4] = {};
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
      uint32_t a[4];
      load_matrices(a, queries.rows_16(first_row, 2 * d));
#pragma unroll
      for (int j = 0; j < kPositions / 16; ++j) {
        uint32_t b[4];
        load_matrices(b, keys.rows_8_8(16 * j, 2 * d));
        multiply_add(scores[2 * j], a, b[0], b[1]);
        multiply_add(scores[2 * j + 1], a, b[2], b[3]);
      }
    }
    __syncthreads();
    copy_tile(keys, all_keys, begin + kPositions, end);  // nothing but zeros behind the last tile
#pragma unroll
    for (int j = 0; j < kPositions / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t position = begin + 8 * j + lane % 4 * 2 + i % 2;
        scores[j][i] = position <= last[i / 2] ? scores[j][i] * c.scale : -INFINITY;
      }
    }
    rows.soften(scores);
    wait_for_copies<1>();
    __syncthreads();
    rows.add(scores, values);
    __syncthreads();
    copy_tile(values, all_values, begin + kPositions, end);
  }
  wait_for_copies<0>();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float sum = rows.sum[r];
#pragma unroll
    for (int step = 1; step < 4; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
    const int64_t row = first + first_row + lane / 4 + 8 * r;
    if (row >= c.rows) continue;
    float* y = c.y + (row * c.heads + head) * kDim + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kDim / 8; ++j) {
      *reinterpret_cast<float2*>(y + 8 * j) = {rows.values[j][2 * r] / sum, rows.values[j][2 * r + 1] / sum};
    }
  }
}

template <int kDim>
void launch(const CudaContext& cuda, const Call& call) {
  const dim3 grid(static_cast<unsigned>(call.heads), blocks_for(call.rows, kRows));
  launch_with_shared(cuda, prompt_attention_kernel<kDim>, grid, kThreads,
                     Bf16Rows<kDim>::bytes(kRows + 2 * kPositions), call);
}

}  // namespace

bool prompt_attention_fits(int64_t rows, const KvLayer& cache) {
  return rows >= kTensorRows && cache.format == KvFormat::kBf16 &&
         (cache.head_dim == 64 || cache.head_dim == 128 || cache.head_dim == 256);
}

void prompt_attention(const CudaContext& cuda, const float* q, int64_t rows, int64_t heads,
                      const Positions& positions, float scale, const KvLayer& cache, float* y) {
  SLUICE_CHECK(prompt_attention_fits(rows, cache));
  constexpr float kLog2E = 1.44269504f;
  const Call call{q, rows, heads, PositionOf(positions), scale * kLog2E, cache, y};
  if (cache.head_dim == 64) return launch<64>(cuda, call);
  if (cache.head_dim == 128) return launch<128>(cuda, call);
  launch<256>(cuda, call);
}

}  // namespace sluice::cuda
