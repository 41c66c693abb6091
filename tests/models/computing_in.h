// Options of loading a model, for tests that say what it computes in.
#pragma once

#include "models/model.h"

namespace sluice {

inline LoadOptions computing_in(Compute compute) {
  LoadOptions options;
  options.compute = compute;
  return options;
}

}  // namespace sluice
