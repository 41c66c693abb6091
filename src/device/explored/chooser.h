// Decides what runs next. The same options give the same decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/explored/options.h"

namespace sluice {

/// One decision of a script: which of how many.
struct Choice {
  uint32_t picked = 0, options = 0;
};

class Chooser {
 public:
  virtual ~Chooser() = default;
  /// `threads`: who could go on, ascending and not empty; 0 is the host. Returns an index into it.
  size_t pick(std::span<const size_t> threads) { return threads.size() == 1 ? 0 : choose(threads); }
  /// A number below `limit` (>= 1) for what is not a question of order.
  virtual uint64_t draw(uint64_t limit) = 0;
  /// Whether decisions are asked for only where the host touches shared memory (see Strategy::kScript).
  virtual bool at_accesses_only() const { return false; }
  /// The decisions so far, where a script records them.
  virtual std::span<const Choice> choices() const { return {}; }

 protected:
  virtual size_t choose(std::span<const size_t> threads) = 0;
};

std::unique_ptr<Chooser> make_chooser(const ExploreOptions& options);

}  // namespace sluice
