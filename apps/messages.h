// What the program says on standard error.
#pragma once

#include <string_view>

namespace sluice::apps {

/// Errors and notes: one line, "sluice: " in front, whatever the message holds.
void print_message(std::string_view message);

}  // namespace sluice::apps
