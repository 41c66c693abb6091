// A block's tile of a matrix product on tensor cores (mma.sync of bf16, from compute capability 8.0 on): rows
// of activations times rows of weights, both with k contiguous.
//
// Activations are rounded to bf16. Weights are decoded on their way into shared memory, to numbers that bf16
// holds exactly (docs/numerics.md); what else multiplies them multiplies f32 sums. An output is the sum of
// mma steps of sixteen k in ascending order, whatever the row's place in the tile, so a row's result does not
// depend on the other rows of the tile.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/tensor_products.cuh"
#include "kernels/cuda/weights.cuh"

namespace sluice::cuda {

constexpr int kTileThreads = 256;
constexpr int kTileColumns = 128;            // rows of weights
constexpr int kStep = 64;                    // k in shared memory at once
constexpr int kPieces = kStep / 8;           // of 16 bytes, of a row
constexpr int kStepChunks = kStep / kChunk;  // of a row
/// Of a part, or of an expert's gate and up together.
constexpr int tile_columns(bool gated) { return gated ? kTileColumns / 2 : kTileColumns; }

/// Loads four 8x8 matrices of bf16 from shared memory; `row` is this lane's row of 16 bytes.
__device__ inline void load_matrices(uint32_t (&matrices)[4], const void* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address));
}
/// The same, each matrix transposed.
__device__ inline void load_transposed(uint32_t (&matrices)[4], const void* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address));
}
/// sums += a [16, 16] . b [16, 8]. Of `sums`, elements 0 and 1 are row lane / 4, columns 2 (lane % 4) and the
/// next; 2 and 3 the same of row lane / 4 + 8.
__device__ inline void multiply_add(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline uint32_t bits_of(__nv_bfloat162 pair) {
  uint32_t bits;
  memcpy(&bits, &pair, sizeof(bits));
  return bits;
}
__device__ inline uint32_t two_bf16(float low, float high) {
  return bits_of(__floats2bfloat162_rn(low, high));
}

/// Rows of kWidth numbers of bf16 in shared memory. Pieces of 16 bytes are permuted inside a row, so that
/// eight rows of one column of pieces lie in different banks.
template <int kWidth>
struct Bf16Rows {
  static constexpr int kRowPieces = kWidth / 8;
  static constexpr size_t bytes(int rows) { return static_cast<size_t>(rows) * kWidth * 2; }
  uint4* pieces;
  __device__ uint4* piece(int row, int p) const { return pieces + row * kRowPieces + (p ^ (row & 7)); }
  /// This lane's row for load_matrices() of rows [row, row + 16) and pieces p and p + 1: an `a` operand.
  __device__ const uint4* rows_16(int row, int p) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return piece(row + lane % 16, p + lane / 16);
  }
  /// The same as two `b` operands, of rows [row, row + 8) and the eight that follow.
  __device__ const uint4* rows_8_8(int row, int p) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return piece(row + lane % 8 + lane / 16 * 8, p + lane / 8 % 2);
  }
};

/// Where a format's scales go.
enum class ScalesGo { kIntoNumbers, kIntoRows, kIntoBlocks };
constexpr ScalesGo scales_of(WeightFormat format) {
  return format == WeightFormat::kFp8Row     ? ScalesGo::kIntoRows
         : format == WeightFormat::kFp8Block ? ScalesGo::kIntoBlocks
                                             : ScalesGo::kIntoNumbers;
}

/// What multiplies the finished sums of a column.
template <WeightFormat kFormat>
__device__ float factor_of(const WeightView& w, int64_t column) {
  if constexpr (scales_of(kFormat) == ScalesGo::kIntoRows) {
    return w.sum_factor() * Decoder<kFormat>::factor(w, column, 0);
  }
  return w.sum_factor();
}

/// A chunk as bf16.
struct Bf16Chunk {
  uint32_t pairs[kChunk / 2];
};

/// Eight e2m1 codes times `scale`, both halves of which are the same number. The bytes of a magnitude's bf16
/// are looked up by its three bits.
__device__ inline void scaled_e2m1(uint32_t codes, __nv_bfloat162 scale, uint32_t* pairs) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t four = codes >> (16 * half), magnitudes = four & 0x7777u;
    const uint32_t low = __byte_perm(0xc0800000u, 0xc0804000u, magnitudes);  // 0 .5 1 1.5 2 3 4 6
    const uint32_t high = __byte_perm(0x3f3f3f00u, 0x40404040u, magnitudes);
    const uint32_t values[2] = {
        __byte_perm(low, high, 0x5140) | (four << 12 & 0x8000u) | (four << 24 & 0x80000000u),
        __byte_perm(low, high, 0x7362) | (four << 4 & 0x8000u) | (four << 16 & 0x80000000u)};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      __nv_bfloat162 pair;
      memcpy(&pair, &values[i], sizeof(pair));
      pairs[2 * half + i] = bits_of(__hmul2(pair, scale));
    }
  }
}

/// Sixteen numbers of a format as bf16, with the scale where it goes into the numbers.
template <WeightFormat kFormat>
__device__ Bf16Chunk bf16_chunk(const WeightView& w, const typename Decoder<kFormat>::Bytes& bytes,
                                float scale) {
  Bf16Chunk chunk;
  if constexpr (kFormat == WeightFormat::kBf16) {
    memcpy(chunk.pairs, bytes.words, sizeof(chunk.pairs));
  } else if constexpr (kFormat == WeightFormat::kNvfp4 || kFormat == WeightFormat::kMxfp4) {
    const __nv_bfloat162 both = __float2bfloat162_rn(scale);  // exact
    scaled_e2m1(bytes.codes.x, both, chunk.pairs);
    scaled_e2m1(bytes.codes.y, both, chunk.pairs + 4);
  } else {
    float values[kChunk];
    Decoder<kFormat>::values(w, bytes, values);
#pragma unroll
    for (int i = 0; i < kChunk / 2; ++i) chunk.pairs[i] = two_bf16(values[2 * i], values[2 * i + 1]);
  }
  return chunk;
}

/// Activations of a tile on their way: a step of kRows rows of f32 or bf16.
template <class Value, int kRows>
struct RowsAhead;

template <int kRows>
struct RowsAhead<float, kRows> {
  static constexpr int kQuarters = kRows * (kStep / 4) / kTileThreads;  // of a thread
  float4 quarters[kQuarters];
  /// rows[r]: row r, or null (0).
  __device__ void read(const float* const* rows, int64_t first, int64_t k) {
#pragma unroll
    for (int i = 0; i < kQuarters; ++i) {
      const int at = static_cast<int>(threadIdx.x) + kTileThreads * i;
      const float* row = rows[at / (kStep / 4)];
      const int64_t from = first + at % (kStep / 4) * 4;
      quarters[i] = row == nullptr || from >= k ? float4{0, 0, 0, 0}
                                                : __ldg(reinterpret_cast<const float4*>(row + from));
    }
  }
  __device__ void write(const Bf16Rows<kStep>& tile) const {
#pragma unroll
    for (int i = 0; i < kQuarters; ++i) {
      const int at = static_cast<int>(threadIdx.x) + kTileThreads * i, quarter = at % (kStep / 4);
      auto* half = reinterpret_cast<uint2*>(tile.piece(at / (kStep / 4), quarter / 2)) + quarter % 2;
      *half = {two_bf16(quarters[i].x, quarters[i].y), two_bf16(quarters[i].z, quarters[i].w)};
    }
  }
};

template <int kRows>
struct RowsAhead<__nv_bfloat16, kRows> {
  static constexpr int kEighths = kRows * kPieces / kTileThreads;
  uint4 eighths[kEighths];
  __device__ void read(const __nv_bfloat16* const* rows, int64_t first, int64_t k) {
#pragma unroll
    for (int i = 0; i < kEighths; ++i) {
      const int at = static_cast<int>(threadIdx.x) + kTileThreads * i;
      const __nv_bfloat16* row = rows[at / kPieces];
      const int64_t from = first + at % kPieces * 8;
      eighths[i] =
          row == nullptr || from >= k ? uint4{0, 0, 0, 0} : *reinterpret_cast<const uint4*>(row + from);
    }
  }
  __device__ void write(const Bf16Rows<kStep>& tile) const {
#pragma unroll
    for (int i = 0; i < kEighths; ++i) {
      const int at = static_cast<int>(threadIdx.x) + kTileThreads * i;
      *tile.piece(at / kPieces, at % kPieces) = eighths[i];
    }
  }
};

/// Weights of a tile on their way: a step of each of its rows.
template <WeightFormat kFormat>
struct WeightsAhead {
  using Decode = Decoder<kFormat>;
  static constexpr int kChunks = kTileColumns * kStepChunks / kTileThreads;
  typename Decode::Bytes bytes[kChunks];
  float scales[kChunks];

  /// Of the thread's i-th chunk, its row of the tile.
  __device__ static int row_of(int i) {
    return (static_cast<int>(threadIdx.x) + kTileThreads * i) / kStepChunks;
  }
  __device__ void read(const WeightView& w, const int64_t (&rows)[kChunks], int64_t first) {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const int64_t chunk = first / kChunk + static_cast<int>(threadIdx.x) % kStepChunks;
      bytes[i] = {};
      scales[i] = 0;
      if (chunk * kChunk >= w.k) continue;
      bytes[i] = Decode::read(w, rows[i], chunk);
      if constexpr (scales_of(kFormat) == ScalesGo::kIntoNumbers)
        scales[i] = Decode::scale(w, rows[i], chunk);
    }
  }
  __device__ void write(const WeightView& w, const Bf16Rows<kStep>& tile) const {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const Bf16Chunk chunk = bf16_chunk<kFormat>(w, bytes[i], scales[i]);
      const int piece = static_cast<int>(threadIdx.x) % kStepChunks * 2;
      *tile.piece(row_of(i), piece) = {chunk.pairs[0], chunk.pairs[1], chunk.pairs[2], chunk.pairs[3]};
      *tile.piece(row_of(i), piece + 1) = {chunk.pairs[4], chunk.pairs[5], chunk.pairs[6], chunk.pairs[7]};
    }
  }
};

/// The columns of a tile of two matrices (gate and up of SwiGLU) lie in groups of eight, of each in turn, so
/// that a thread has both products of a column. [matrix, column inside the tile] of row n of the tile.
struct TileColumn {
  int matrix, column;
};
template <bool kGated>
__device__ TileColumn tile_column(int n) {
  if (!kGated) return {0, n};
  return {n / 8 % 2, n / 16 * 8 + n % 8};
}

/// kRows rows of activations times a tile of weights. `kGated`: two matrices, else w[0] alone.
template <WeightFormat kFormat, class Value, int kRows, bool kGated>
class TensorTile {
  static constexpr int kWarpRows = 2;  // warps along the rows
  static constexpr int kWarpColumns = kTileThreads / kWarp / kWarpRows;
  static constexpr int kRowTiles = kRows / 16 / kWarpRows;  // of a warp
  static constexpr int kColumnTiles = kTileColumns / 8 / kWarpColumns;
  using Weights = WeightsAhead<kFormat>;

 public:
  /// Shared memory: two tiles of activations and two of weights.
  static constexpr size_t kSharedBytes =
      2 * (Bf16Rows<kStep>::bytes(kRows) + Bf16Rows<kStep>::bytes(kTileColumns));

  /// `rows`, in shared memory: rows of activations, null where there is none. `w`: gate and up, or the same
  /// twice; columns from `column` on; those behind n are worked on and not given out.
  __device__ TensorTile(uint4* shared, const Value* const* rows, int /*count*/, const WeightView (&w)[2],
                        int64_t column, int64_t n)
      : shared_(shared),
        rows_(rows),
        weights_(tile_column<kGated>(Weights::row_of(0)).matrix == 0 ? w[0] : w[1]),
        k_(w[0].k),
        column_(column),
        n_(n) {
    // A thread's chunks are of one matrix: their rows of the tile are a multiple of sixteen apart.
    static_assert(kTileThreads / kStepChunks % 16 == 0);
#pragma unroll
    for (int i = 0; i < Weights::kChunks; ++i) {
      weight_rows_[i] = min(column + tile_column<kGated>(Weights::row_of(i)).column, n - 1);
    }
    clear(sums_);
  }

  /// All threads of the block. `before_rows` is called once, when weights are on their way and nothing of the
  /// activations has been read.
  template <class BeforeRows>
  __device__ void multiply(const WeightView (&w)[2], BeforeRows&& before_rows) {
    const int steps = static_cast<int>(ceil_div(k_, kStep));
    RowsAhead<Value, kRows> rows;
    Weights weights;
    weights.read(weights_, weight_rows_, 0);
    before_rows();
    rows.read(rows_, 0, k_);
    rows.write(activations(0));
    weights.write(weights_, numbers(0));
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
      const bool more = step + 1 < steps;
      if (more) {
        weights.read(weights_, weight_rows_, static_cast<int64_t>(step + 1) * kStep);
        rows.read(rows_, static_cast<int64_t>(step + 1) * kStep, k_);
      }
      multiply_step(step % 2);
      if (kBlocks && ((step + 1) * kStep % kFp8BlockSize == 0 || !more)) {
        scale_block(w, static_cast<int64_t>(step) * kStep / kChunk);
      }
      if (more) {
        rows.write(activations((step + 1) % 2));
        weights.write(weights_, numbers((step + 1) % 2));
      }
      __syncthreads();
    }
  }

  /// emit(row, column, product, product of the second matrix) for this thread's part of the tile; `row`
  /// counts from the tile's first.
  template <class Emit>
  __device__ void give(const WeightView (&w)[2], Emit&& emit) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int j = 0; j < kColumnTiles; j += kGated ? 2 : 1) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const TileColumn at = tile_column<kGated>(first_column() + 8 * j);
        const int64_t column = column_ + at.column + lane % 4 * 2 + half;
        if (column >= n_) continue;
        const float factor = factor_of<kFormat>(w[0], column),
                    other = kGated ? factor_of<kFormat>(w[1], column) : 0;
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
          for (int low = 0; low < 2; ++low) {
            const int row = first_row() + 16 * i + 8 * low + lane / 4;
            const auto& sums = finished();
            emit(row, column, sums[i][j][2 * low + half] * factor,
                 kGated ? sums[i][j + (kGated ? 1 : 0)][2 * low + half] * other : 0.0f);
          }
        }
      }
    }
  }

 private:
  static constexpr bool kBlocks = scales_of(kFormat) == ScalesGo::kIntoBlocks;
  using Sums = float[kRowTiles][kColumnTiles][4];

  __device__ static void clear(Sums& sums) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
#pragma unroll
        for (int c = 0; c < 4; ++c) sums[i][j][c] = 0;
      }
    }
  }
  __device__ Bf16Rows<kStep> activations(int which) const {
    return {shared_ + which * (kRows + kTileColumns) * kPieces};
  }
  __device__ Bf16Rows<kStep> numbers(int which) const {
    return {shared_ + (which * (kRows + kTileColumns) + kRows) * kPieces};
  }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static int first_row() { return warp() / kWarpColumns * kRowTiles * 16; }
  __device__ static int first_column() { return warp() % kWarpColumns * kColumnTiles * 8; }

  __device__ void multiply_step(int which) {
    const Bf16Rows<kStep> x = activations(which), w = numbers(which);
#pragma unroll
    for (int p = 0; p < kPieces; p += 2) {
      uint32_t a[kRowTiles][4], b[kColumnTiles / 2][4];
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) load_matrices(a[i], x.rows_16(first_row() + 16 * i, p));
#pragma unroll
      for (int j = 0; j < kColumnTiles / 2; ++j) load_matrices(b[j], w.rows_8_8(first_column() + 16 * j, p));
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int j = 0; j < kColumnTiles; ++j) {
          multiply_add(sums_[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  // A tile's columns of one matrix lie in one block of 128 rows, since it begins at a multiple of their
  // number.
  __device__ void scale_block(const WeightView (&w)[2], int64_t chunk) {
    if constexpr (kBlocks) {
      const float factors[2] = {Decoder<kFormat>::factor(w[0], column_, chunk),
                                kGated ? Decoder<kFormat>::factor(w[1], column_, chunk) : 0};
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
        for (int j = 0; j < kColumnTiles; ++j) {
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            scaled_.sums[i][j][c] = fmaf(sums_[i][j][c], factors[kGated ? j % 2 : 0], scaled_.sums[i][j][c]);
          }
        }
      }
      clear(sums_);
    }
  }
  __device__ const Sums& finished() const {
    if constexpr (kBlocks) {
      return scaled_.sums;
    } else {
      return sums_;
    }
  }
  struct Scaled {
    Sums sums = {};
  };
  struct Nothing {};

  uint4* shared_;
  const Value* const* rows_;
  const WeightView weights_;
  int64_t weight_rows_[Weights::kChunks];
  int64_t k_, column_, n_;
  Sums sums_;
  std::conditional_t<kBlocks, Scaled, Nothing> scaled_;
};

}  // namespace sluice::cuda
