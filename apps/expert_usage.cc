// The heat map of experts.
#include "apps/expert_usage.h"

#include <algorithm>
#include <numeric>

namespace sluice::apps {
namespace {

constexpr size_t kColumns = 64;  // experts beside each other; more share a column

std::string heat(const std::vector<int64_t>& counts) {
  static constexpr std::string_view kShades = " .:-=+*#%@";
  const size_t columns = std::min(kColumns, counts.size());
  std::vector<int64_t> sums(columns);
  for (size_t e = 0; e < counts.size(); ++e) sums[e * columns / counts.size()] += counts[e];
  const int64_t highest = std::max<int64_t>(1, *std::max_element(sums.begin(), sums.end()));
  std::string line;
  for (const int64_t sum : sums) {
    const auto steps = static_cast<int64_t>(kShades.size()) - 1;
    line +=
        kShades[static_cast<size_t>((sum * steps + highest - 1) / highest)];  // used at all is never blank
  }
  return line;
}

}  // namespace

RouteObserver ExpertUsage::observer() {
  return [this](int64_t layer, std::span<const int32_t> ids, int64_t) {
    auto& counts = counts_[layer];
    counts.resize(static_cast<size_t>(info_.experts));
    for (const int32_t id : ids) {
      if (id >= 0) ++counts[static_cast<size_t>(id)];
    }
  };
}

std::string ExpertUsage::table() const {
  std::string text;
  int64_t used = 0, all = 0;
  for (const auto& [layer, counts] : counts_) {
    const auto distinct = std::count_if(counts.begin(), counts.end(), [](int64_t n) { return n > 0; });
    used += distinct;
    all += static_cast<int64_t>(counts.size());
    std::string name = std::to_string(layer);
    name.insert(0, name.size() < 4 ? 4 - name.size() : 0, ' ');
    text += "layer" + name + " |" + heat(counts) + "| " + std::to_string(distinct) + " of " +
            std::to_string(counts.size()) + " experts\n";
  }
  text += "used " + std::to_string(used) + " of " + std::to_string(all) + " experts, " +
          std::to_string(info_.top_k) + " a token and layer\n";
  return text;
}

}  // namespace sluice::apps
