// The fences of a protocol: which were used, and which a test takes out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice {

enum class FenceKind {
  kRecord,      // Stream::record
  kStreamWait,  // Stream::wait
  kHostWait,    // Device::wait for an event or a stream
  kDone,        // Device::done; taken out, it answers yes
};

/// "record", "stream wait", "host wait", "done".
std::string_view name_of(FenceKind kind);

/// All calls of one kind with one event on one stream; two events of one name are one fence.
struct Fence {
  FenceKind kind = FenceKind::kRecord;
  std::string stream;  // who records or waits; "host" for the host
  std::string target;  // name of the event, or of the stream that a host wait is for
  int64_t uses = 0;
  /// Waits that found a record to wait for.
  int64_t bound = 0;
  /// Waits that ordered something which nothing else had ordered. 0 for a bound wait: it could go. Does not
  /// depend on the schedule unless done() does.
  int64_t needed = 0;

  bool same(FenceKind k, std::string_view s, std::string_view t) const {
    return kind == k && stream == s && target == t;
  }
};

/// "stream wait for 'ready' on 'compute'".
std::string describe(const Fence& fence);

class FenceLog {
 public:
  static constexpr int64_t kEvery = 0;

  /// From now on the `nth` use (1 is the first of all) of the fence, or each one, does nothing.
  void drop(FenceKind kind, std::string stream, std::string target, int64_t nth);
  /// Counts a use; returns its index in fences(), and in `dropped` whether it is to do nothing.
  size_t use(FenceKind kind, const std::string& stream, const std::string& target, bool& dropped);
  Fence& at(size_t index) { return fences_[index]; }
  /// In the order of their first use.
  std::span<const Fence> fences() const { return fences_; }

 private:
  struct Drop {
    Fence fence;
    int64_t nth;
  };
  std::vector<Fence> fences_;
  std::vector<Drop> drops_;
};

}  // namespace sluice
