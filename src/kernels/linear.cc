// Checks, dispatch and the host version of matrix products.
#include "kernels/linear.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/bf16_rows.h"
#include "kernels/cuda/ops.h"
#include "kernels/products.h"

namespace sluice {
namespace {

void linear_host(const HostContext& host, const float* x, int64_t rows, const Matrix& w, const float* bias,
                 float* y) {
  const RoundedRows input(w.compute, x, rows, w.k);
  std::vector<const float*> in(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) in[static_cast<size_t>(r)] = input.row(r);
  const Products multiply = products();
  host.pool.parallel_for(w.n, products_grain(rows, w.k), [&](int64_t begin, int64_t end) {
    std::vector<float*> out(static_cast<size_t>(rows));
    for (int64_t r = 0; r < rows; ++r) out[static_cast<size_t>(r)] = y + r * w.n + begin;
    multiply(in.data(), rows, w, begin, end - begin, out.data());
    if (bias == nullptr) return;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = begin; j < end; ++j) y[r * w.n + j] += bias[j];
  });
}

}  // namespace

void linear(Stream& stream, const float* x, int64_t rows, const Matrix& w, const float* bias, float* y) {
  SLUICE_CHECK(rows >= 0 && w.data != nullptr);
  stream.launch_both(
      {.name = "linear",
       .reads = {range_of(x, rows * w.k), w.data_range(), w.scale_range(), range_of(bias, bias ? w.n : 0)},
       .writes = {range_of(y, rows * w.n)},
       .flops = static_cast<uint64_t>(2 * rows * w.n * w.k)},
      [=](const HostContext& host) { linear_host(host, x, rows, w, bias, y); },
      SLUICE_CUDA_OP(cuda::linear, x, rows, w, bias, y));
}

void embedding(Stream& stream, const int32_t* ids, int64_t rows, const Matrix& table, float* y) {
  stream.launch_both(
      {.name = "embedding",
       .reads = {range_of(ids, rows), table.data_range(), table.scale_range()},
       .writes = {range_of(y, rows * table.k)}},
      [=](const HostContext&) {
        for (int64_t r = 0; r < rows; ++r) {
          SLUICE_CHECK(ids[r] >= 0 && ids[r] < table.n);
          decode_row(table, ids[r], y + r * table.k);
        }
      },
      SLUICE_CUDA_OP(cuda::embedding, ids, rows, table, y));
}

void split_columns(Stream& stream, const float* x, int64_t rows, int64_t n, float* left, float* right) {
  stream.launch_both(
      {.name = "split_columns",
       .reads = {range_of(x, rows * 2 * n)},
       .writes = {range_of(left, rows * n), range_of(right, rows * n)}},
      [=](const HostContext&) {
        for (int64_t r = 0; r < rows; ++r) {
          std::copy_n(x + r * 2 * n, n, left + r * n);
          std::copy_n(x + r * 2 * n + n, n, right + r * n);
        }
      },
      SLUICE_CUDA_OP(cuda::split_columns, x, rows, n, left, right));
}

}  // namespace sluice
