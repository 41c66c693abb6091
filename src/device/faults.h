// Failures that tests order from a device: what a full card or a strict system does, on demand.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

enum class Fault {
  kAllocation,  // Device::allocate throws kOutOfMemory
  kPageLock,    // Device::lock_pages answers with a refusal
  kCopy,        // Stream::copy and copy_batch fail with kIo
};

/// Which calls fail, by the purpose or name that they give. Rules are set before the device is used by a
/// second thread, which may ask.
class FaultPlan {
 public:
  static constexpr int kEvery = 0;

  /// From now on the `nth` call of this kind whose purpose contains `text` fails (1 is the next), or every
  /// one.
  void add(Fault fault, std::string text, int nth = 1) { rules_.push_back({fault, std::move(text), nth, 0}); }
  void clear() { rules_.clear(); }

  /// For devices and streams; each call counts as one of its kind.
  bool refuses(Fault fault, std::string_view purpose) { return !rules_.empty() && matches(fault, purpose); }

 private:
  struct Rule {
    Fault fault;
    std::string text;
    int nth, seen;
  };
  bool matches(Fault fault, std::string_view purpose);

  std::mutex mutex_;  // of the counts in the rules
  std::vector<Rule> rules_;
};

}  // namespace sluice
