// What a user says in one go: a line, several lines, or a command.
#pragma once

#include <string>

#include "apps/line_reader.h"

namespace sluice::apps {

struct Turn {
  enum Kind { kMessage, kCommand, kEnd };
  Kind kind = kEnd;
  std::string text;  // kCommand: with its slash, without blanks at the ends; kMessage: never blank
};

/// Reads until something is there to do. A line that ends with a backslash goes on in the next; a line """
/// begins a block that another """ ends, whose lines are taken as they are; a slash begins a command unless
/// the turn has more than one line. Blank turns and dropped ones (Ctrl-C) are passed over. The end of the
/// input completes a turn that has begun.
Turn read_turn(LineReader& reader);

}  // namespace sluice::apps
