// How to wait for a flag in memory: at first eagerly, later cheaply.
#pragma once

#include <chrono>
#include <thread>

namespace sluice {

/// One wait. Spins for about a microsecond, then gives the processor away, and sleeps once a millisecond has
/// gone: what waits for a flag may share its core with what sets it.
class Patience {
 public:
  void pause() {
    if (++pauses_ <= kSpins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (pauses_ == kSpins + 1) {
      start_ = std::chrono::steady_clock::now();
      std::this_thread::yield();
    } else if (std::chrono::steady_clock::now() - start_ < std::chrono::milliseconds(1)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  static constexpr int kSpins = 64;
  int pauses_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace sluice
