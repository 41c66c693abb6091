// Products of few rows on tensor cores: each warp streams rows of weights straight from memory into operands,
// as many at once as registers hold, against activations in shared memory.
//
// A step is 64 k. A thread takes one chunk of sixteen consecutive k of it, of weights and of activations
// alike: the k of an mma step are then not consecutive, which a sum does not mind. Sums are made in ascending
// steps, whatever rows are beside a row.
#pragma once

#include "kernels/cuda/tensor_tile.cuh"

namespace sluice::cuda {

constexpr int kStripStep = 4 * kChunk;  // k
constexpr int kStripPiece = 1024;       // k of the activations in shared memory
constexpr int kStripSteps = kStripPiece / kStripStep;

/// kRowTiles * 16 rows of activations times 8 rows of weights a warp; `kGated`: of both matrices.
template <WeightFormat kFormat, class Value, int kRowTiles, int kWarps, bool kGated>
class TensorStrip {
  using Decode = Decoder<kFormat>;
  static constexpr int kMatrices = kGated ? 2 : 1;
  static constexpr bool kBlocks = scales_of(kFormat) == ScalesGo::kIntoBlocks;
  // Steps whose weights are on their way.
  static constexpr int kAhead = sizeof(typename Decode::Bytes) <= 8 && !kGated ? 8
                                : sizeof(typename Decode::Bytes) <= 32         ? 4
                                                                               : 2;
  static constexpr int kRowBytes = kStripPiece * 2 + 16;  // rows of eight lanes lie in different banks

 public:
  static constexpr int kRows = 16 * kRowTiles, kThreads = kWarps * kWarp, kColumns = 8 * kWarps;
  static constexpr size_t kSharedBytes = static_cast<size_t>(kRows) * kRowBytes;

  /// `rows`, in shared memory: rows of activations, null where there is none, `count` of which are used. `w`:
  /// gate and up, or the same twice; the block's columns begin at `column`; those behind n are worked on and
  /// not given out.
  __device__ TensorStrip(uint4* shared, const Value* const* rows, int count, const WeightView (&w)[2],
                         int64_t column, int64_t n)
      : shared_(reinterpret_cast<std::byte*>(shared)),
        rows_(rows),
        count_(count),
        k_(w[0].k),
        column_(column + static_cast<int>(threadIdx.x) / kWarp * 8),
        n_(n) {
    weight_row_ = min(column_ + lane() / 4, n - 1);
  }

  /// All threads of the block; TensorTile::multiply.
  template <class BeforeRows>
  __device__ void multiply(const WeightView (&w)[2], BeforeRows&& before_rows) {
    const int steps = static_cast<int>(ceil_div(k_, kStripStep));
    Ahead ahead[kAhead];  // of step s in [s % kAhead]
#pragma unroll
    for (int i = 0; i < kAhead; ++i) read(w, ahead[i], i, steps);
    before_rows();
    for (int first = 0; first < steps; first += kStripSteps) {
      if (first > 0) __syncthreads();  // the last piece has been read
      stage(static_cast<int64_t>(first) * kStripStep);
      __syncthreads();
      for (int begin = first; begin < min(steps, first + kStripSteps); begin += kAhead) {
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
          const int step = begin + i;
          if (step >= steps) break;
          multiply_step(w, ahead[i], step - first);
          read(w, ahead[i], step + kAhead, steps);
          if (kBlocks && ((step + 1) * kStripStep % kFp8BlockSize == 0 || step + 1 == steps)) {
            scale_block(w, static_cast<int64_t>(step) * kStripStep / kChunk);
          }
        }
      }
    }
  }

  /// TensorTile::give.
  template <class Emit>
  __device__ void give(const WeightView (&w)[2], Emit&& emit) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t column = column_ + lane() % 4 * 2 + half;
      if (column >= n_) continue;
      const float factor = factor_of<kFormat>(w[0], column);
      const float other = kGated ? factor_of<kFormat>(w[1], column) : 0;
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int low = 0; low < 2; ++low) {
          const int row = 16 * i + 8 * low + lane() / 4;
          const auto& sums = kBlocks ? scaled_ : sums_;
          emit(row, column, sums[0][i][2 * low + half] * factor,
               kGated ? sums[kMatrices - 1][i][2 * low + half] * other : 0.0f);
        }
      }
    }
  }

 private:
  struct Ahead {
    typename Decode::Bytes bytes[kMatrices];
    float scales[kMatrices];
  };

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

  __device__ void read(const WeightView (&w)[2], Ahead& ahead, int step, int steps) const {
    if (step >= steps) return;
    const int64_t chunk = static_cast<int64_t>(step) * (kStripStep / kChunk) + lane() % 4;
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) {
      ahead.bytes[m] = {};
      ahead.scales[m] = 0;
      if (chunk * kChunk >= k_) continue;
      ahead.bytes[m] = Decode::read(w[m], weight_row_, chunk);
      if constexpr (scales_of(kFormat) == ScalesGo::kIntoNumbers) {
        ahead.scales[m] = Decode::scale(w[m], weight_row_, chunk);
      }
    }
  }

  /// Activations [from, from + kStripPiece) of the rows that there are, as bf16; 0 behind their ends.
  __device__ void stage(int64_t from) {
    constexpr int kOfRow = kStripPiece / 8;  // eight numbers at once
    const int pieces = count_ * kOfRow;
#pragma unroll 8
    for (int at = static_cast<int>(threadIdx.x); at < pieces; at += kThreads) {
      const int row = at / kOfRow;
      const int64_t k = from + at % kOfRow * 8;
      *reinterpret_cast<uint4*>(shared_ + row * kRowBytes + at % kOfRow * 16) =
          k < k_ ? eight(rows_[row] + k) : uint4{0, 0, 0, 0};
    }
  }
  __device__ static uint4 eight(const float* x) {
    const auto* halves = reinterpret_cast<const float4*>(x);
    const float4 low = __ldg(halves), high = __ldg(halves + 1);
    return {two_bf16(low.x, low.y), two_bf16(low.z, low.w), two_bf16(high.x, high.y),
            two_bf16(high.z, high.w)};
  }
  __device__ static uint4 eight(const __nv_bfloat16* x) { return *reinterpret_cast<const uint4*>(x); }

  /// A thread's chunk of a row: numbers [0, 8) and [8, 16).
  __device__ void load(uint4 (&chunk)[2], int row, int step) const {
    chunk[0] = chunk[1] = {0, 0, 0, 0};
    if (row >= count_) return;
    const auto* from =
        reinterpret_cast<const uint4*>(shared_ + row * kRowBytes + (step * 4 + lane() % 4) * kChunk * 2);
    chunk[0] = from[0];
    chunk[1] = from[1];
  }

  __device__ void multiply_step(const WeightView (&w)[2], const Ahead& ahead, int step) {
    Bf16Chunk b[kMatrices];
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) b[m] = bf16_chunk<kFormat>(w[m], ahead.bytes[m], ahead.scales[m]);
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      uint4 low[2], high[2];
      load(low, 16 * i + lane() / 4, step);
      load(high, 16 * i + lane() / 4 + 8, step);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint32_t a[4] = {word(low[j / 2], j % 2 * 2), word(high[j / 2], j % 2 * 2),
                               word(low[j / 2], j % 2 * 2 + 1), word(high[j / 2], j % 2 * 2 + 1)};
#pragma unroll
        for (int m = 0; m < kMatrices; ++m) {
          multiply_add(sums_[m][i], a, b[m].pairs[2 * j], b[m].pairs[2 * j + 1]);
        }
      }
    }
  }
  __device__ static uint32_t word(const uint4& four, int i) {
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
  }

  // A warp's columns of one matrix lie in one block of 128 rows, since they begin at a multiple of eight.
  __device__ void scale_block(const WeightView (&w)[2], int64_t chunk) {
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) {
      const float factor = Decode::factor(w[m], min(column_, n_ - 1), chunk);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          scaled_[m][i][c] = fmaf(sums_[m][i][c], factor, scaled_[m][i][c]);
          sums_[m][i][c] = 0;
        }
      }
    }
  }

  std::byte* shared_;
  const Value* const* rows_;
  int count_;
  int64_t k_, column_, n_, weight_row_;
  float sums_[kMatrices][kRowTiles][4] = {};
  float scaled_[kMatrices][kRowTiles][4] = {};  // of formats whose scales go into blocks
};

}  // namespace sluice::cuda
