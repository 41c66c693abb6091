// How rendering stops inside the interpreter. The chat template turns it into an Error that names the line.
#pragma once

#include <string>

namespace sluice::jinja {

struct Failure {
  enum class Cause {
    kRaised,   // raise_exception: the template's own words
    kRuntime,  // the template did something that Python refuses
    kLimit,    // well-formed, but past what is allowed here
  };
  Cause cause;
  std::string message;
};

/// A run-time error under the name that Python gives it: fail("TypeError", "...").
[[noreturn]] void fail(const char* type, const std::string& message);
[[noreturn]] void fail_limit(const std::string& message);

}  // namespace sluice::jinja
