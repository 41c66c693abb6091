// The middle of measured values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/error.h"

namespace sluice {

/// The value in the middle, of an even number the upper one of the two. `values` is not empty.
inline double median(std::vector<double> values) {
  SLUICE_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sluice
