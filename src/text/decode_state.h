// What a decoder remembers between tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice {

struct DecodeState {
  std::string pending;     // bytes that are no whole character yet, or the run of byte tokens so far
  size_t whole_bytes = 0;  // of `pending`, in a run of byte tokens: these are whole characters
  bool is_first = true;    // no token came yet
  bool run_is_broken =
      false;             // the run of byte tokens is no UTF-8: all its bytes become U+FFFD, also later ones
  int64_t stripped = 0;  // characters dropped at the start; -1: the text has begun
};

}  // namespace sluice
