// A progress bar on standard error that goes away, and is not there at all where that is no terminal.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/units.h"

namespace sluice::apps {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label)
      : label_(std::move(label)), terminal_(::isatty(STDERR_FILENO) != 0) {}
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

  /// Draws at most every 50 ms: a terminal must not slow the work.
  void update(uint64_t done, uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || total == 0 || now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    shown_ = true;
    constexpr uint64_t kWidth = 30;
    const auto filled = static_cast<size_t>(kWidth * (done < total ? done : total) / total);
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, ' ');
    std::fprintf(stderr, "\r%s [%s] %s of %s\033[K", label_.c_str(), bar.c_str(), format_bytes(done).c_str(),
                 format_bytes(total).c_str());
  }

 private:
  std::string label_;
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace sluice::apps
