// Checks, dispatch and the host version of matrix products.
#include "kernels/linear.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/cuda/ops.h"
#include "kernels/norm.h"
#include "kernels/products.h"

namespace sluice {
namespace {

float sigmoid(float value) { return 1.0f / (1.0f + std::exp(-value)); }

/// Columns [begin, end) of a product, into rows of `width` = end - begin values.
void multiply(const std::vector<const float*>& x, const Matrix& w, int64_t begin, int64_t end,
              const std::vector<float*>& out) {
  products().multiply(x.data(), static_cast<int64_t>(x.size()), w, begin, end - begin, out.data());
}

/// Columns [begin, end) of a part.
void part_host(const std::vector<const float*>& x, const LinearPart& part, int64_t begin, int64_t end) {
  const size_t rows = x.size();
  const int64_t width = end - begin;
  const bool gated = part.up.data != nullptr;
  const bool has_scratch = gated || part.add;
  std::vector<float> scratch(has_scratch ? rows * static_cast<size_t>(width) : 0);
  std::vector<float*> out(rows), beside(rows);
  for (size_t r = 0; r < rows; ++r) {
    out[r] = part.y + static_cast<int64_t>(r) * part.w.n + begin;
    if (has_scratch) beside[r] = scratch.data() + static_cast<int64_t>(r) * width;
  }
  const std::vector<float*>& product = part.add ? beside : out;
  multiply(x, part.w, begin, end, product);
  if (gated) multiply(x, part.up, begin, end, beside);
  for (size_t r = 0; r < rows; ++r) {
    if (gated) silu_and_multiply_host(out[r], beside[r], width, out[r]);
    for (int64_t j = 0; j < width && part.bias != nullptr; ++j) product[r][j] += part.bias[begin + j];
    if (!part.add) continue;
    const float factor = part.gate == nullptr ? 1.0f : sigmoid(part.gate[r]);
    for (int64_t j = 0; j < width; ++j) out[r][j] += factor * product[r][j];
  }
}

void linear_host(const HostContext& host, const float* x, int64_t rows, const LinearParts& parts) {
  if (rows == 0) return;
  std::vector<const float*> in(static_cast<size_t>(rows));
  for (const LinearPart& part : parts) {
    PreparedRows input(part.w.format, part.w.compute, rows, part.w.k);
    host.pool.parallel_for(rows, input.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) input.prepare(r, x + r * part.w.k);
    });
    for (int64_t r = 0; r < rows; ++r) in[static_cast<size_t>(r)] = input.row(r);
    host.pool.parallel_for(part.w.n, products_grain(rows, part.w.k),
                           [&](int64_t begin, int64_t end) { part_host(in, part, begin, end); });
  }
}

void check(const LinearParts& parts) {
  SLUICE_CHECK(parts.begin() != parts.end());
  const int64_t k = parts.begin()->w.k;
  for (const LinearPart& part : parts) {
    SLUICE_CHECK(part.w.data != nullptr && part.y != nullptr && part.w.k == k);
    SLUICE_CHECK(part.gate == nullptr || part.add);
    const bool gated = part.up.data != nullptr;
    SLUICE_CHECK(!gated || (part.bias == nullptr && !part.add && part.up.n == part.w.n && part.up.k == k &&
                            part.up.format == part.w.format && part.up.compute == part.w.compute));
  }
}

uint64_t flops_of(const LinearParts& parts, int64_t rows) {
  int64_t columns = 0;
  for (const LinearPart& part : parts) columns += part.w.n * (part.up.data != nullptr ? 2 : 1);
  return static_cast<uint64_t>(2 * rows * columns * parts.begin()->w.k);
}

void declare(const LinearPart& part, int64_t rows, RangeSink& sink) {
  for (const Matrix* w : {&part.w, &part.up}) {
    if (w->data == nullptr) continue;
    sink.reads(w->data_range());
    sink.reads(w->scale_range());
  }
  if (part.bias != nullptr) sink.reads(range_of(part.bias, part.w.n));
  if (part.gate != nullptr) sink.reads(range_of(part.gate, rows));
  if (part.add) sink.reads(range_of(part.y, rows * part.w.n));
  sink.writes(range_of(part.y, rows * part.w.n));
}

void launch(Stream& stream, const float* x, int64_t rows, const LinearParts& parts) {
  SLUICE_CHECK(rows >= 0);
  check(parts);
  stream.launch_both(
      {.name = "linear", .reads = {range_of(x, rows * parts.begin()->w.k)}, .flops = flops_of(parts, rows)},
      [=](RangeSink& sink) {
        for (const LinearPart& part : parts) declare(part, rows, sink);
      },
      [=](const HostContext& host) { linear_host(host, x, rows, parts); },
      SLUICE_CUDA_OP(cuda::linear_parts, x, rows, parts));
}

}  // namespace

void linear(Stream& stream, const float* x, int64_t rows, const Matrix& w, const float* bias, float* y) {
  launch(stream, x, rows, LinearParts({{.w = w, .bias = bias, .y = y}}));
}

void linear_parts(Stream& stream, const float* x, int64_t rows, std::initializer_list<LinearPart> parts) {
  launch(stream, x, rows, LinearParts(parts));
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

}  // namespace sluice
