// Where the tokens of a batch stand in their sequence.
#pragma once

#include <cstdint>

namespace sluice {

/// Consecutive positions from `first` on.
struct Positions {
  Positions(int64_t first_position, const int32_t* rows = nullptr) : first(first_position), of_rows(rows) {}
  int64_t first;
  /// [rows] in device memory, or null. Where it is given, kernels of a device read it in place of `first`, so
  /// that operations which were recorded once serve other positions too.
  const int32_t* of_rows;
};

}  // namespace sluice
