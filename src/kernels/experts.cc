// Routed experts on the host: all gate and up products, the activation, all down products, then the weighted
// sums.
#include "kernels/experts.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/cuda/ops.h"
#include "kernels/norm.h"
#include "kernels/products.h"

namespace sluice {
namespace {

/// The (row, rank) pairs of the routes, grouped by expert.
struct Groups {
  struct Piece {  // a range of output columns of one expert
    int32_t expert;
    int64_t begin, end;
  };
  std::vector<int64_t> first;  // [experts + 1] into `pairs`
  std::vector<int64_t> pairs;  // row * k + rank, ascending inside an expert

  /// Only experts in [low, high) that have a row count.
  Groups(const ExpertRoutes& routes, const ExpertRows& experts, int32_t low, int32_t high)
      : first(static_cast<size_t>(experts.experts) + 1) {
    const int64_t n = routes.rows * routes.k;
    const auto counts = [&](int32_t id) {
      SLUICE_CHECK(id >= -1 && id < experts.experts);
      return id >= low && id < high && experts.row_of[id] >= 0;
    };
    for (int64_t i = 0; i < n; ++i) {
      if (counts(routes.ids[i])) ++first[static_cast<size_t>(routes.ids[i]) + 1];
    }
    for (size_t e = 1; e < first.size(); ++e) first[e] += first[e - 1];
    pairs.resize(static_cast<size_t>(first.back()));
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for (int64_t i = 0; i < n; ++i) {
      if (counts(routes.ids[i])) pairs[static_cast<size_t>(next[static_cast<size_t>(routes.ids[i])]++)] = i;
    }
  }

  int64_t size(int32_t expert) const {
    return first[static_cast<size_t>(expert) + 1] - first[static_cast<size_t>(expert)];
  }
  /// Where an expert's pairs begin among all, and the i-th of all.
  int64_t place(int32_t expert) const { return first[static_cast<size_t>(expert)]; }
  const int64_t* begin(int32_t expert) const { return pairs.data() + place(expert); }
  int64_t pair(int64_t i) const { return pairs[static_cast<size_t>(i)]; }
  int64_t count() const { return static_cast<int64_t>(pairs.size()); }

  /// Cuts the `columns` output columns of every used expert into pieces of parallel work.
  std::vector<Piece> pieces(int64_t columns, int64_t k) const {
    std::vector<Piece> result;
    for (int32_t e = 0; e + 1 < static_cast<int32_t>(first.size()); ++e) {
      if (size(e) == 0) continue;
      const int64_t grain = products_grain(size(e), k);
      for (int64_t b = 0; b < columns; b += grain) result.push_back({e, b, std::min(columns, b + grain)});
    }
    return result;
  }
};

void multiply(const Matrix& w, int64_t begin, int64_t end, const std::vector<const float*>& x,
              std::vector<float*>& y) {
  products().multiply(x.data(), static_cast<int64_t>(x.size()), w, begin, end - begin, y.data());
}

void expert_sums_host(const HostContext& host, const float* outputs, const ExpertRoutes& routes,
                      int64_t hidden, float* y) {
  host.pool.parallel_for(routes.rows, std::max<int64_t>(1, 16 * 1024 / hidden),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t r = begin; r < end; ++r) {
                             float* out = y + r * hidden;
                             std::fill(out, out + hidden, 0.0f);
                             for (int64_t i = r * routes.k; i < (r + 1) * routes.k; ++i) {
                               if (routes.ids[i] < 0) continue;
                               for (int64_t j = 0; j < hidden; ++j)
                                 out[j] += routes.weights[i] * outputs[i * hidden + j];
                             }
                           }
                         });
}

}  // namespace

void expert_products_host(ThreadPool& pool, const float* x, const ExpertRoutes& routes,
                          const ExpertRows& experts, int32_t first, int32_t last, float* activations,
                          float* outputs) {
  const int64_t hidden = experts.layout.hidden, inner = experts.layout.intermediate;
  const Groups groups(routes, experts, first, last);
  const auto matrices = [&](int32_t e) {
    const auto row = static_cast<size_t>(experts.row_of[e]) * experts.layout.row_bytes;
    return matrices_of(experts.layout, experts.compute, experts.rows + row,
                       experts.scalars + int64_t{e} * kScalarsPerExpert);
  };

  const auto prepare_all = [&](PreparedRows& prepared, int64_t n, const auto& source) {
    pool.parallel_for(n, prepared.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) prepared.prepare(i, source(i));
    });
  };
  PreparedRows input(experts.layout.format, experts.compute, routes.rows, hidden);
  prepare_all(input, routes.rows, [&](int64_t r) { return x + r * hidden; });

  const auto run = [&](int64_t columns, int64_t k, const auto& body) {
    const std::vector<Groups::Piece> pieces = groups.pieces(columns, k);
    pool.parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) body(pieces[static_cast<size_t>(p)]);
    });
  };

  run(inner, hidden, [&](const Groups::Piece& piece) {
    const ExpertMatrices m = matrices(piece.expert);
    const auto n = static_cast<size_t>(groups.size(piece.expert));
    const int64_t* pair = groups.begin(piece.expert);
    const int64_t width = piece.end - piece.begin;
    std::vector<float> up(n * static_cast<size_t>(width));
    std::vector<const float*> in(n);
    std::vector<float*> gate_out(n), up_out(n);
    for (size_t i = 0; i < n; ++i) {
      in[i] = input.row(pair[i] / routes.k);
      gate_out[i] = activations + pair[i] * inner + piece.begin;
      up_out[i] = up.data() + static_cast<int64_t>(i) * width;
    }
    multiply(m.gate, piece.begin, piece.end, in, gate_out);
    multiply(m.up, piece.begin, piece.end, in, up_out);
    for (size_t i = 0; i < n; ++i) silu_and_multiply_host(gate_out[i], up_out[i], width, gate_out[i]);
  });

  // In the order of the groups: only these pairs have activations.
  PreparedRows activated(experts.layout.format, experts.compute, groups.count(), inner);
  prepare_all(activated, groups.count(), [&](int64_t i) { return activations + groups.pair(i) * inner; });

  run(hidden, inner, [&](const Groups::Piece& piece) {
    const ExpertMatrices m = matrices(piece.expert);
    const auto n = static_cast<size_t>(groups.size(piece.expert));
    const int64_t* pair = groups.begin(piece.expert);
    std::vector<const float*> in(n);
    std::vector<float*> out(n);
    for (size_t i = 0; i < n; ++i) {
      in[i] = activated.row(groups.place(piece.expert) + static_cast<int64_t>(i));
      out[i] = outputs + pair[i] * hidden + piece.begin;
    }
    multiply(m.down, piece.begin, piece.end, in, out);
  });
}

ExpertMatrices matrices_of(const RowLayout& layout, Compute compute, const std::byte* row,
                           const float* scalars) {
  const int64_t hidden = layout.hidden, inner = layout.intermediate;
  const auto part = [&](const RowLayout::Part& numbers, const RowLayout::Part& scales, size_t half, int64_t n,
                        int64_t k, float global) {
    const std::byte* scale = scales.bytes == 0 ? nullptr : row + scales.offset + half * scales.bytes / 2;
    return Matrix{{layout.format, n, k, row + numbers.offset + half * numbers.bytes / 2, scale, global},
                  compute};
  };
  return {part(layout.gate_up, layout.gate_up_scale, 0, inner, hidden, scalars[0]),
          part(layout.gate_up, layout.gate_up_scale, 1, inner, hidden, scalars[1]),
          part(layout.down, layout.down_scale, 0, hidden, inner, scalars[2])};
}

void expert_products(Stream& stream, const float* x, const ExpertRoutes& routes, const ExpertRows& experts,
                     int32_t first, int32_t last, float* activations, float* outputs) {
  const int64_t hidden = experts.layout.hidden, inner = experts.layout.intermediate;
  const int64_t pairs = routes.rows * routes.k;
  // Which rows are read, and which outputs are written, is known once the ids are.
  const auto data_ranges = [=](RangeSink& sink) {
    std::vector<bool> read(static_cast<size_t>(experts.experts));  // a row crosses once for all of its pairs
    for (int64_t i = 0; i < pairs; ++i) {
      const int32_t id = routes.ids[i];
      if (id < first || id >= last || experts.row_of[id] < 0) continue;
      if (!read[static_cast<size_t>(id)]) {
        sink.reads({experts.rows + static_cast<size_t>(experts.row_of[id]) * experts.layout.row_bytes,
                    experts.layout.row_bytes});
      }
      read[static_cast<size_t>(id)] = true;
      sink.writes(range_of(activations + i * inner, inner));
      sink.writes(range_of(outputs + i * hidden, hidden));
    }
  };
  stream.launch_both(
      {.name = "expert_products",
       .reads = {range_of(x, routes.rows * hidden), range_of(routes.ids, pairs),
                 range_of(experts.row_of + first, last - first),
                 range_of(experts.scalars, experts.experts * kScalarsPerExpert)},
       .flops = static_cast<uint64_t>(6 * pairs * hidden * inner)},
      data_ranges,
      [=](const HostContext& host) {
        expert_products_host(host.pool, x, routes, experts, first, last, activations, outputs);
      },
      SLUICE_CUDA_OP(cuda::expert_products, x, routes, experts, first, last, activations, outputs));
}

void expert_sums(Stream& stream, const float* outputs, const ExpertRoutes& routes, int64_t hidden, float* y) {
  const int64_t pairs = routes.rows * routes.k;
  stream.launch_both(
      {.name = "expert_sums",
       .reads = {range_of(outputs, pairs * hidden), range_of(routes.ids, pairs),
                 range_of(routes.weights, pairs)},
       .writes = {range_of(y, routes.rows * hidden)},
       .flops = static_cast<uint64_t>(2 * pairs * hidden)},
      [=](const HostContext& host) { expert_sums_host(host, outputs, routes, hidden, y); },
      SLUICE_CUDA_OP(cuda::expert_sums, outputs, routes, hidden, y));
}

}  // namespace sluice
