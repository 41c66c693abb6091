// The grouped products of a layer's routed experts.
#pragma once

#include "checkpoint/weights.h"
#include "device/stream.h"
#include "kernels/matrix.h"

namespace sluice {

/// Where the experts of one layer lie: expert e's packed row is `rows + row_of[e] * layout.row_bytes`.
struct ExpertRows {
  RowLayout layout;
  const std::byte* rows = nullptr;
  const int32_t* row_of = nullptr;  // [experts]; -1: not computable, its outputs stay as they are
  const float* scalars = nullptr;   // [experts, kScalarsPerExpert]
  int64_t experts = 0;
  Compute compute = Compute::kF32;
};

/// Which experts each row of activations goes to. An id of -1 (a row that only pads a batch) adds nothing.
struct ExpertRoutes {
  const int32_t* ids = nullptr;    // [rows, k]
  const float* weights = nullptr;  // [rows, k]
  int64_t rows = 0, k = 0;
};

/// outputs[r * k + i, :] = down(silu(gate(x[r])) * up(x[r])) of expert ids[r, i], for the experts in [first,
/// last) alone; the other outputs stay as they are. x [rows, hidden], outputs [rows * k, hidden], activations
/// (scratch) [rows * k, intermediate]. The bytes that are read are the rows of the routed experts.
void expert_products(Stream& stream, const float* x, const ExpertRoutes& routes, const ExpertRows& experts,
                     int32_t first, int32_t last, float* activations, float* outputs);

/// The host version, at once and on the threads of `pool`: for workers beside a device.
void expert_products_host(ThreadPool& pool, const float* x, const ExpertRoutes& routes,
                          const ExpertRows& experts, int32_t first, int32_t last, float* activations,
                          float* outputs);

/// y[r, :] = sum over i, in order, of weights[r, i] * outputs[r * k + i, :]. y [rows, hidden].
void expert_sums(Stream& stream, const float* outputs, const ExpertRoutes& routes, int64_t hidden, float* y);

/// The three matrices of an expert's packed row.
struct ExpertMatrices {
  Matrix gate, up, down;
};
ExpertMatrices matrices_of(const RowLayout& layout, Compute compute, const std::byte* row,
                           const float* scalars);

}  // namespace sluice
