// What is wrong with a command line itself.
#pragma once

#include <string>

#include "base/error.h"

namespace sluice::apps {

/// An unknown option, a value that is missing, malformed or out of range, options that exclude each other or
/// have no effect together: the program ends with exit code 2. What depends on files or on the model is a
/// plain Error, exit code 1.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ErrorCode::kInvalidArgument, message) {}
};

}  // namespace sluice::apps
