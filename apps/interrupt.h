// Ctrl-C as a question that can be asked, for as long as the guard lives.
#pragma once

#include <atomic>
#include <csignal>

#include "base/error.h"

namespace sluice::apps {

namespace internal {
inline std::atomic<bool> interrupted{false};
}

/// While it lives, SIGINT sets a flag; afterwards the former handler is back. A second SIGINT before anyone
/// asked ends the program as usual.
class InterruptGuard {
 public:
  InterruptGuard() {
    internal::interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) {
      if (!internal::interrupted.exchange(true)) return;
      std::signal(SIGINT, SIG_DFL);
      std::raise(SIGINT);
    };
    ::sigaction(SIGINT, &action, &former_);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard() { ::sigaction(SIGINT, &former_, nullptr); }

  bool raised() const { return internal::interrupted; }
  /// Throws Error kCancelled once it was raised.
  void check() const {
    if (raised()) throw Error(ErrorCode::kCancelled, "stopped by Ctrl-C");
  }

 private:
  struct sigaction former_ {};
};

}  // namespace sluice::apps
