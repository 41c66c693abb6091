// Lines that a user gives: edited at a terminal, or plain from a pipe.
#pragma once

#include <memory>
#include <string>

namespace sluice::apps {

struct Line {
  enum Kind { kText, kCancelled, kEnd };  // kCancelled: Ctrl-C
  Kind kind = kEnd;
  std::string text;  // valid UTF-8 without the end of the line
};

class LineReader {
 public:
  virtual ~LineReader() = default;
  /// Waits for one line. `prompt` is shown at terminals only. Throws Error kIo.
  virtual Line read(const std::string& prompt) = 0;
};

/// Standard input as it is: no prompt, no editing, no history.
std::unique_ptr<LineReader> make_plain_reader();

/// Emacs keys (or what ~/.editrc says), a history that outlives the program where ChatHistory finds a place
/// for it, Ctrl-C to drop the line, Ctrl-D to end. Draws on standard output, or on standard error where that
/// is no terminal. Throws Error kIo.
std::unique_ptr<LineReader> make_terminal_reader();

}  // namespace sluice::apps
