// The memory that a model needs, line by line, and whether it fits a card.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::apps {

/// A line of the plan. Where an option sets its size, `bytes` = count * unit_bytes.
struct MemoryLine {
  std::string name, note = {};
  uint64_t bytes = 0;
  bool on_device = true;
  bool takes_the_rest = false;  // of the card; `bytes` are the least of it
  std::string option = {};
  uint64_t unit_bytes = 0;
  int64_t least = 0;  // of count: below that nothing runs
  int64_t most = 0;   // of count, where it takes the rest
};

/// How a plan meets a card's memory.
struct CardFit {
  bool fits = true;
  uint64_t need_bytes = 0;
  std::string over;                 // the first line that no longer fits
  std::vector<std::string> advice;  // each alone would fit: "--context 2048"
  uint64_t least_bytes = 0;         // with every line as small as it may be
  int64_t rest_count = 0;           // of the line that takes the rest, where all fits; 0: no line does
};

class MemoryPlan {
 public:
  void add(MemoryLine line) { lines_.push_back(std::move(line)); }
  const std::vector<MemoryLine>& lines() const { return lines_; }
  CardFit fit(uint64_t card_bytes) const;
  /// Whether a line grows into what the others leave.
  bool takes_the_rest() const;

 private:
  std::vector<MemoryLine> lines_;
};

/// "needs 20.1 GB; over at "KV cache"; would fit: --context 2048".
std::string describe_misfit(const CardFit& fit);

}  // namespace sluice::apps
