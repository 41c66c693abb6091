// The loops of products over any vector unit. A file for one instruction set includes this once, inside its
// anonymous namespace, after it has defined SLUICE_TARGET (the attribute of functions that use the set) and
//
//   struct Vector: `Register`, `kLanes`, zero, set1, load, store, fma(a, b, c) = a * b + c, and `reduce`,
//   which adds the lanes in an order of its own;
//   loaders, `Rows<Compute>(w, row)`: load(j, c, sink) calls sink(i, register) for i < kChunk / kLanes, in
//   order, with chunk c (kChunk columns) of weight row `row` + j; column_of(i) is the column that is i-th in
//   them. The numbers are to be multiplied by kUnit, a power of two, which sums can be as well.
//
// The canonical sum of one output: one accumulator of kLanes lanes takes the registers of each chunk in
// order; the lanes are added; then the columns past the last full chunk follow one by one. In bf16, FP8 with
// scales for blocks does the first for each block of 128 columns, multiplies its lanes by the scale and adds
// them to the row's. A single row of x is multiplied straight from the weight's format (decode is bound by
// the bytes of the weights), several rows share a panel of decoded weight rows. Both follow that sum.

constexpr int64_t kPanelRows = 24;  // 192 KiB of f32 at k = 2048: less than half of an L2 cache
constexpr int64_t kTileRows = 4;    // 4 x 3 accumulators and their operands fit sixteen registers
constexpr int64_t kTileColumns = 3;
constexpr int64_t kColumnsAtOnce = 512;  // 4 rows of x, 8 KiB of f32, stay in an L1 cache

/// What multiplies sums of weight rows from `first` on: those of blocks of `columns`, and finished ones.
struct Factors {
  const Matrix& w;
  const int64_t first;
  const bool bf16 = w.compute == Compute::kBf16;
  const int64_t columns = bf16 ? bf16_factor_columns(w) : w.k;
  const bool in_blocks = columns < w.k;

  float of_block(int64_t j, int64_t block) const {
    return in_blocks ? bf16_factor(w, first + j, block) : 1.0f;
  }
  float of_sum(int64_t j) const { return bf16 && !in_blocks ? bf16_factor(w, first + j, 0) : 1.0f; }
};

/// Takes registers of a chunk: multiplies them with x and adds to a sum, or stores them.
struct AddTo {
  const float* x;
  typename Vector::Register& sum;
  SLUICE_INLINE void operator()(int i, typename Vector::Register values) const {
    sum = Vector::fma(Vector::load(x + i * Vector::kLanes), values, sum);
  }
};
struct StoreTo {
  float* out;
  typename Vector::Register unit;
  SLUICE_INLINE void operator()(int i, typename Vector::Register values) const {
    Vector::store(out + i * Vector::kLanes, Vector::mul(values, unit));
  }
};

/// N weight rows from `first` times one row of x, straight from the format. k is a multiple of the chunk.
template <class Rows, int N>
SLUICE_TARGET void one_row(const float* x, const Matrix& w, int64_t first, float* y) {
  const Rows rows(w, first);
  const Factors factors{w, first};
  typename Vector::Register totals[N];
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) totals[j] = Vector::zero();
  for (int64_t block = 0, c = 0; block * factors.columns < w.k; ++block) {
    typename Vector::Register sums[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sums[j] = factors.in_blocks ? Vector::zero() : totals[j];
    const int64_t end = std::min(w.k, (block + 1) * factors.columns) / Rows::kChunk;
    for (; c < end; ++c) {
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) rows.load(j, c, AddTo{x + c * Rows::kChunk, sums[j]});
    }
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      const auto factor = Vector::set1(factors.of_block(j, block) * Rows::kUnit);
      totals[j] = factors.in_blocks ? Vector::fma(sums[j], factor, totals[j]) : sums[j];
    }
  }
  const float unit = factors.in_blocks ? 1.0f : Rows::kUnit;
  for (int j = 0; j < N; ++j) y[j] = Vector::reduce(totals[j]) * unit * factors.of_sum(j);
}

/// Sums of R rows of x with N rows of a decoded panel over columns [begin, end), added to `sums`
/// [R][kPanelRows] registers; `factors` [N], or null where they are 1.
template <int R, int N>
SLUICE_TARGET void tile(const float* const* x, const float* panel, int64_t stride, int64_t begin, int64_t end,
                        const float* factors, float* sums) {
  typename Vector::Register acc[R][N];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int j = 0; j < N; ++j) {
      acc[r][j] =
          factors != nullptr ? Vector::zero() : Vector::load(sums + (r * kPanelRows + j) * Vector::kLanes);
    }
  }
  for (int64_t i = begin; i < end; i += Vector::kLanes) {
    typename Vector::Register w[N];
#pragma GCC unroll 3
    for (int j = 0; j < N; ++j) w[j] = Vector::load(panel + j * stride + i);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const auto value = Vector::load(x[r] + i);
#pragma GCC unroll 3
      for (int j = 0; j < N; ++j) acc[r][j] = Vector::fma(value, w[j], acc[r][j]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
    for (int j = 0; j < N; ++j) {
      float* sum = sums + (r * kPanelRows + j) * Vector::kLanes;
      if (factors != nullptr) acc[r][j] = Vector::fma(acc[r][j], Vector::set1(factors[j]), Vector::load(sum));
      Vector::store(sum, acc[r][j]);
    }
  }
}

using Tile = void (*)(const float* const*, const float*, int64_t, int64_t, int64_t, const float*, float*);
constexpr Tile kTiles[kTileRows][kTileColumns] = {{tile<1, 1>, tile<1, 2>, tile<1, 3>},
                                                  {tile<2, 1>, tile<2, 2>, tile<2, 3>},
                                                  {tile<3, 1>, tile<3, 2>, tile<3, 3>},
                                                  {tile<4, 1>, tile<4, 2>, tile<4, 3>}};

/// `count` weight rows from `first` on, decoded: [count][stride] in the loader's order, the columns past the
/// last full chunk in their own.
template <class Rows>
SLUICE_TARGET void decode(const Matrix& w, int64_t first, int64_t count, float* panel, int64_t stride) {
  const Rows rows(w, first);
  const int64_t chunks = w.k / Rows::kChunk;
  for (int64_t j = 0; j < count; ++j) {
    float* out = panel + j * stride;
    for (int64_t c = 0; c < chunks; ++c, out += Rows::kChunk) {
      rows.load(j, c, StoreTo{out, Vector::set1(Rows::kUnit)});
    }
    if (chunks * Rows::kChunk == w.k) continue;
    // A ragged k: the reference decodes to the same values.
    static thread_local std::vector<float> whole;
    whole.resize(static_cast<size_t>(w.k));
    w.compute == Compute::kBf16 ? decode_row_bf16(w, first + j, whole.data())
                                : decode_row(w, first + j, whole.data());
    std::copy(whole.begin() + chunks * Rows::kChunk, whole.end(), out);
  }
}

/// Up to kTileRows rows of x times the `count` rows of a panel.
SLUICE_TARGET inline void panel_rows(const float* const* x, int64_t rows, const Factors& factors,
                                     const float* panel, int64_t stride, int64_t count, int64_t full,
                                     float* const* y, int64_t at) {
  alignas(64) float sums[kTileRows * kPanelRows * Vector::kLanes];
  std::fill(std::begin(sums), std::end(sums), 0.0f);
  const int64_t step = factors.in_blocks ? factors.columns : kColumnsAtOnce;
  for (int64_t begin = 0; begin < full; begin += step) {
    for (int64_t j = 0; j < count; j += kTileColumns) {
      const int64_t n = std::min(kTileColumns, count - j);
      float of_block[kTileColumns];
      for (int64_t i = 0; i < n; ++i) of_block[i] = factors.of_block(j + i, begin / factors.columns);
      kTiles[rows - 1][n - 1](x, panel + j * stride, stride, begin, std::min(full, begin + step),
                              factors.in_blocks ? of_block : nullptr, sums + j * Vector::kLanes);
    }
  }
  const int64_t k = factors.w.k, last = (k - 1) / factors.columns;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < count; ++j) {
      float tail = 0;
      for (int64_t i = full; i < k; ++i) tail += x[r][i] * panel[j * stride + i];
      const float sum = Vector::reduce(Vector::load(sums + (r * kPanelRows + j) * Vector::kLanes));
      y[r][at + j] = (sum + tail * factors.of_block(j, last)) * factors.of_sum(j);
    }
  }
}

template <class Rows>
void run_panels(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
                float* const* y) {
  static thread_local std::vector<float> panel;
  const int64_t stride = (w.k + 15) / 16 * 16, full = w.k / Rows::kChunk * Rows::kChunk;
  panel.resize(static_cast<size_t>(kPanelRows * stride));
  for (int64_t at = 0; at < count; at += kPanelRows) {
    const int64_t n = std::min(kPanelRows, count - at);
    decode<Rows>(w, first + at, n, panel.data(), stride);
    const Factors factors{w, first + at};
    for (int64_t r = 0; r < rows; r += kTileRows) {
      panel_rows(x + r, std::min(kTileRows, rows - r), factors, panel.data(), stride, n, full, y + r, at);
    }
  }
}

template <class Rows>
void run(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
         float* const* y) {
  if (rows != 1 || w.k % Rows::kChunk != 0) return run_panels<Rows>(x, rows, w, first, count, y);
  constexpr int64_t kTogether = Rows::kTogether;
  int64_t j = 0;
  for (; j + kTogether <= count; j += kTogether) one_row<Rows, kTogether>(x[0], w, first + j, y[0] + j);
  for (; j < count; ++j) one_row<Rows, 1>(x[0], w, first + j, y[0] + j);
}

template <class Rows>
constexpr std::array<uint8_t, Rows::kChunk> kColumns = [] {
  std::array<uint8_t, Rows::kChunk> columns{};
  for (int i = 0; i < Rows::kChunk; ++i)
    columns[static_cast<size_t>(i)] = static_cast<uint8_t>(Rows::column_of(i));
  return columns;
}();

template <class Rows>
void arrange(const float* x, int64_t k, float* out) {
  const int64_t full = k / Rows::kChunk * Rows::kChunk;
  for (int64_t c = 0; c < full; c += Rows::kChunk)
    for (size_t i = 0; i < Rows::kChunk; ++i) out[c + static_cast<int64_t>(i)] = x[c + kColumns<Rows>[i]];
  std::copy(x + full, x + k, out + full);
}

/// Calls body(Rows<compute>) with the loader of the matrix.
template <Compute kCompute, class Body>
void with_rows(WeightFormat format, Body&& body) {
  switch (format) {
    case WeightFormat::kF32:
      return body.template operator()<F32Rows<kCompute>>();
    case WeightFormat::kF16:
      return body.template operator()<F16Rows<kCompute>>();
    case WeightFormat::kBf16:
      return body.template operator()<Bf16Rows<kCompute>>();
    case WeightFormat::kFp8Block:
      return body.template operator()<Fp8BlockRows<kCompute>>();
    case WeightFormat::kFp8Row:
      return body.template operator()<Fp8Rows<kCompute>>();
    case WeightFormat::kNvfp4:
      return body.template operator()<Nvfp4Rows<kCompute>>();
    case WeightFormat::kMxfp4:
      return body.template operator()<Mxfp4Rows<kCompute>>();
  }
}

template <class Body>
void with_rows(WeightFormat format, Compute compute, Body&& body) {
  compute == Compute::kBf16 ? with_rows<Compute::kBf16>(format, body)
                            : with_rows<Compute::kF32>(format, body);
}

void prepare(const float* x, WeightFormat format, Compute compute, int64_t k, float* prepared) {
  with_rows(format, compute, [&]<class Rows>() { arrange<Rows>(x, k, prepared); });
  if (compute == Compute::kBf16) round_to_bf16(prepared, k, prepared);
}

void multiply(const float* const* x, int64_t rows, const Matrix& w, int64_t first, int64_t count,
              float* const* y) {
  with_rows(w.format, w.compute, [&]<class Rows>() { run<Rows>(x, rows, w, first, count, y); });
}
