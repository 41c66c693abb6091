// Errors that stop a load or a request, and checks of broken invariants.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

enum class ErrorCode {
  kInvalidArgument,  // the caller's input: a flag, a prompt, an id out of range
  kBadFile,          // a file that is broken: truncated, wrong shape, no JSON
  kNotFound,         // a file, tensor or field that should be there
  kUnsupported,      // well-formed, but nothing here can run it
  kOutOfMemory,      // does not fit; the message names the line that is over
  kCancelled,        // stopped by the user
  kIo,               // the operating system refused
};

/// The word that messages and logs use for `code`, for example "bad_file".
std::string_view name_of(ErrorCode code);

/// What stops a load or a request. Caught in two places: main and the server's request boundary.
/// The message says what was wrong, where, and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

namespace internal {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);
}

// A broken invariant of ours: prints place and condition and aborts. Never for input.
#define SLUICE_CHECK(condition)                                                        \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::sluice::internal::check_failed(__FILE__, __LINE__, #condition, std::string()); \
  } while (false)
#define SLUICE_CHECK_MSG(condition, detail)                                       \
  do {                                                                            \
    if (!(condition)) [[unlikely]]                                                \
      ::sluice::internal::check_failed(__FILE__, __LINE__, #condition, (detail)); \
  } while (false)

}  // namespace sluice
