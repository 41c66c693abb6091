// Root mean square normalisation. Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
#pragma once

#include "device/stream.h"

namespace sluice {

/// y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + epsilon) * weight. x and y [rows, n] may be the same; weight
/// [n].
void rms_norm(Stream& stream, const float* x, int64_t rows, int64_t n, const float* weight, float epsilon,
              float* y);

/// x += y, element by element; both [n].
void add(Stream& stream, float* x, const float* y, int64_t n);

/// x[r, :] += sigmoid(gate[r]) * y[r, :]. x and y [rows, n], gate [rows].
void add_gated(Stream& stream, float* x, const float* y, const float* gate, int64_t rows, int64_t n);

/// y = silu(gate) * up, element by element, all [n]: the gated activation of SwiGLU (Shazeer 2020).
void silu_and_multiply(Stream& stream, const float* gate, const float* up, int64_t n, float* y);

/// The same at once, on the host; what the experts' kernel uses.
void silu_and_multiply_host(const float* gate, const float* up, int64_t n, float* y);

}  // namespace sluice
