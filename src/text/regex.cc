// PCRE2 behind Regex: compiled to machine code once, matched with scratch that each thread owns.
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"

namespace sluice {
namespace {

// The machine code uses 32 KiB of the caller's stack; patterns that keep many places to return to need more,
// so a match that ran out is repeated with its own stack. Pages are touched only as they are needed.
constexpr size_t kJitStackStart = size_t{64} << 10;
constexpr size_t kJitStackLimit = size_t{64} << 20;

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// What a match writes to. One for each thread, since expressions are shared.
class Scratch {
 public:
  Scratch() : match_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
    SLUICE_CHECK(match_ != nullptr && context_ != nullptr);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    pcre2_match_data_free(match_);
    pcre2_match_context_free(context_);
    if (stack_ != nullptr) pcre2_jit_stack_free(stack_);
  }

  pcre2_match_data* match() { return match_; }
  pcre2_match_context* context() { return context_; }
  /// Returns false if the large stack is in use already.
  bool grow_stack() {
    if (stack_ != nullptr) return false;
    stack_ = pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr);
    if (stack_ == nullptr) return false;
    pcre2_jit_stack_assign(context_, nullptr, stack_);
    return true;
  }

 private:
  pcre2_match_data* match_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_ = nullptr;
};

}  // namespace

struct Regex::Code {
  pcre2_code* compiled = nullptr;
  std::string where;
  ~Code() { pcre2_code_free(compiled); }
};

Regex::Regex(std::string_view pattern, const std::string& where) : code_(std::make_unique<Code>()) {
  const std::string translated = pcre2_from_oniguruma(pattern, where);
  code_->where = where;
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  SLUICE_CHECK(context != nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);  // as in Ruby's syntax, ^ and $ match at every line feed
  code_->compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (code_->compiled == nullptr) {
    throw Error(ErrorCode::kUnsupported, where + ": regular expression: " + message_of(error));
  }
  error = pcre2_jit_compile(code_->compiled, PCRE2_JIT_COMPLETE);
  if (error != 0) {
    throw Error(ErrorCode::kUnsupported,
                where + ": regular expression: no machine code: " + message_of(error));
  }
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

bool Regex::find(std::string_view subject, size_t from, Match& match) const {
  thread_local Scratch scratch;
  int result;
  do {
    result = pcre2_jit_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(),
                             from, 0, scratch.match(), scratch.context());
  } while (result == PCRE2_ERROR_JIT_STACKLIMIT && scratch.grow_stack());
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) {
    throw Error(ErrorCode::kUnsupported, code_->where + ": regular expression: " + message_of(result));
  }
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(scratch.match());
  match = {range[0], range[1]};
  return true;
}

}  // namespace sluice
