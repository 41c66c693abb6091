// Guards of the interpreter's state, shared by its two halves.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "text/jinja/failure.h"
#include "text/jinja/interpreter.h"

namespace sluice::jinja {

class Interpreter::Nested {
 public:
  explicit Nested(Interpreter& interpreter) : interpreter_(interpreter) {
    if (interpreter.nesting_ >= kMaxNesting) {
      fail_limit("the template runs deeper than " + std::to_string(kMaxNesting) + " nested statements");
    }
    ++interpreter.nesting_;
  }
  ~Nested() { --interpreter_.nesting_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Interpreter& interpreter_;
};

/// Sends what is written to a text of its own.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.output_, &text_)) {}
  ~Capture() { interpreter_.output_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  std::string take() { return std::move(text_); }

 private:
  Interpreter& interpreter_;
  std::string text_;
  std::string* outer_;
};

/// Runs what follows in a new scope inside `parent`.
class Interpreter::InScope {
 public:
  InScope(Interpreter& interpreter, std::shared_ptr<const Scope> parent)
      : interpreter_(interpreter),
        outer_(std::exchange(interpreter.scope_, std::make_shared<Scope>(std::move(parent)))) {}
  ~InScope() { interpreter_.scope_ = std::move(outer_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;
  const std::shared_ptr<Scope>& outer() const { return outer_; }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> outer_;
};

}  // namespace sluice::jinja
