// The program under a pseudo terminal.
#pragma once

#include <sys/types.h>

#include <string>

#include "apps/program.h"

namespace sluice::testing {

/// Types at the program and reads what it shows. A program that still runs at the end is killed.
class Terminal {
 public:
  Terminal(const Arguments& arguments, const Arguments& environment);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  /// Waits until `text` appears after what an earlier call found. Fails the test, and returns false, if the
  /// program ends without it or shows nothing for a minute.
  bool wait_for(const std::string& text);
  void type(const std::string& keys);
  /// Reads to the end of the program; its exit code, or -1 if a signal ended it. Fails the test if it goes on
  /// silently for a minute.
  int wait_for_end();
  /// Everything shown so far.
  const std::string& screen() const { return screen_; }

 private:
  enum Reading { kMore, kSilence, kEnd };
  Reading read_more();

  pid_t child_ = -1;
  int master_ = -1;
  std::string screen_;
  size_t seen_ = 0;  // wait_for found everything before this
};

}  // namespace sluice::testing
