// What filters, tests and methods need of the render that they run in: its budget, and calls back into it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

#ifdef SLUICE_FUZZ
inline constexpr int64_t kMaxSteps = 200'000;  // or a fuzzer spends its time in loops
#else
inline constexpr int64_t kMaxSteps = 10'000'000;
#endif
// Published templates look from each message of an agent at all the others: 2000 messages take 27 M steps
// (measured). What a render may take therefore grows with the messages that it is given, up to a few seconds.
inline constexpr int64_t kStepsPerMessage = 20'000;
inline constexpr int64_t kMostStepsOfMessages = 90'000'000;
inline constexpr size_t kMaxTextBytes = size_t{64} << 20;
// Bytes that count as one step: a template can't make the render slow with few but long strings.
inline constexpr size_t kBytesPerStep = 64;
// A value that is made costs about 100 bytes: with this price all that a render can make stay below 300 MB.
inline constexpr int64_t kObjectSteps = 4;

/// The state of one render. Not shared between threads.
class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  /// Counts work. Throws Failure (limit) past kMaxSteps and what allow_messages added.
  void step(int64_t count = 1) {
    steps_ += count;
    if (steps_ > max_steps_) steps_exceeded();
  }
  void allow_messages(int64_t messages) {
    max_steps_ = kMaxSteps + std::min(messages * kStepsPerMessage, kMostStepsOfMessages);
  }
  /// Counts `bytes` of text that is made or walked. Throws past the budget, or where they alone pass
  /// kMaxTextBytes.
  void charge_bytes(size_t bytes);

  Value text(std::string valid_utf8, bool markup = false);
  Value sequence(Kind kind, ValueList items);
  Value list(ValueList items) { return sequence(Kind::kList, std::move(items)); }
  Value iterator(ValueList items) { return sequence(Kind::kIterator, std::move(items)); }
  bool equal(const Value& a, const Value& b);  // equals(), charged

  /// By name; throw Failure if there is none.
  Value filter(std::string_view name, const Value& input, const Arguments& arguments);
  bool test(std::string_view name, const Value& input, const Arguments& arguments);
  Value call(const Value& callee, const Arguments& arguments);

  /// Keeps `object` until the end of the render and then empties it: namespaces can hold themselves.
  void own_namespace(std::shared_ptr<struct Namespace> object);

 protected:
  void release_namespaces();

 private:
  [[noreturn]] void steps_exceeded() const;
  int64_t steps_ = 0, max_steps_ = kMaxSteps;
  std::vector<std::shared_ptr<struct Namespace>> namespaces_;
};

/// What namespace() makes: the one value that a template can change.
struct Namespace : Object {
  Dict attributes;
  std::string type_name() const override { return "Namespace"; }
  std::string repr() const override;
  bool attribute(Runtime&, std::string_view name, Value& value) override;
};

/// A text that grows and is charged while it does.
class TextBuilder {
 public:
  explicit TextBuilder(Runtime& runtime) : runtime_(runtime) {}
  TextBuilder& append(std::string_view piece);
  TextBuilder& append(char byte) { return append(std::string_view(&byte, 1)); }
  TextBuilder& repeat(std::string_view piece, int64_t count);
  size_t size() const { return text_.size(); }
  Value value(bool markup = false) { return Value::text(std::move(text_), markup); }
  std::string take() { return std::move(text_); }

 private:
  Runtime& runtime_;
  std::string text_;
  size_t uncharged_ = 0;
};

/// Elements of a value as `for` walks them; an iterator is empty afterwards. Throws Failure (TypeError).
ValueList iterate(Runtime& runtime, const Value& value);
/// len(). Throws Failure (TypeError).
int64_t length_of(const Value& value);
/// The message of an undefined value as UndefinedError, or SecurityError.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace sluice::jinja
