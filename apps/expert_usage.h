// Which experts an answer used, for people to see.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"

namespace sluice::apps {

/// Counts routed experts by layer.
class ExpertUsage {
 public:
  explicit ExpertUsage(const ModelInfo& info) : info_(info) {}
  RouteObserver observer();
  /// A heat map with one line a layer, and a line of totals.
  std::string table() const;

 private:
  const ModelInfo& info_;
  std::map<int64_t, std::vector<int64_t>> counts_;  // layer -> [experts]
};

}  // namespace sluice::apps
