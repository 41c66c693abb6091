// The time that templates see.
#pragma once

#include <string>

namespace sluice::jinja {

/// strftime of the local time now, or of the ISO time in the environment variable SLUICE_CLOCK
/// (2026-11-29T12:00:00) where it is set. Throws Error kInvalidArgument if SLUICE_CLOCK is no such time.
std::string format_now(const std::string& format);

}  // namespace sluice::jinja
