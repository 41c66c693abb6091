// The budget of a render, and iteration.
#include "text/jinja/runtime.h"

#include <algorithm>

#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/tests.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {

void Runtime::steps_exceeded() const {
  fail_limit("the template takes more than " + std::to_string(max_steps_ / 1'000'000) + " million steps");
}

void Runtime::charge_bytes(size_t bytes) {
  if (bytes > kMaxTextBytes) fail_limit("a text of the template is larger than 64 MB");
  step(static_cast<int64_t>(bytes / kBytesPerStep));
}

Value Runtime::text(std::string valid_utf8, bool markup) {
  step(kObjectSteps);
  charge_bytes(valid_utf8.size());
  return Value::text(std::move(valid_utf8), markup);
}

Value Runtime::sequence(Kind kind, ValueList items) {
  step(kObjectSteps + static_cast<int64_t>(items.size() / 2));
  return Value::sequence(kind, std::move(items));
}

bool Runtime::equal(const Value& a, const Value& b) {
  step(std::min(a.weight(), b.weight()));
  return equals(a, b);
}

Value Runtime::filter(std::string_view name, const Value& input, const Arguments& arguments) {
  const FilterFunction function = find_filter(name);
  if (function == nullptr) fail("TemplateRuntimeError", "No filter named '" + std::string(name) + "'.");
  step();
  return function(*this, input, arguments);
}

bool Runtime::test(std::string_view name, const Value& input, const Arguments& arguments) {
  const TestFunction function = find_test(name);
  if (function == nullptr) fail("TemplateRuntimeError", "No test named '" + std::string(name) + "'.");
  step();
  return function(*this, input, arguments);
}

Value Runtime::call(const Value& callee, const Arguments& arguments) {
  step();
  if (callee.is_undefined()) fail_undefined(callee);
  if (!callee.is(Kind::kObject)) fail("TypeError", "'" + type_name(callee) + "' object is not callable");
  return callee.as_object().call(*this, arguments);
}

void Runtime::own_namespace(std::shared_ptr<Namespace> object) { namespaces_.push_back(std::move(object)); }

void Runtime::release_namespaces() {
  for (const auto& object : namespaces_) object->attributes = Dict();
  namespaces_.clear();
}

std::string Namespace::repr() const {
  return "<Namespace of " + std::to_string(attributes.items.size()) + " attributes>";
}

bool Namespace::attribute(Runtime&, std::string_view name, Value& value) {
  const Value* found = attributes.find(name);
  if (found != nullptr) value = *found;
  return found != nullptr;
}

TextBuilder& TextBuilder::append(std::string_view piece) {
  if (piece.size() > kMaxTextBytes - text_.size()) fail_limit("a text of the template is larger than 64 MB");
  uncharged_ += piece.size();
  if (uncharged_ >= kBytesPerStep) {
    runtime_.charge_bytes(uncharged_);
    uncharged_ = 0;
  }
  text_.append(piece);
  return *this;
}

TextBuilder& TextBuilder::repeat(std::string_view piece, int64_t count) {
  if (piece.empty()) return *this;
  const auto room = static_cast<int64_t>(kMaxTextBytes / piece.size());
  if (count > room) fail_limit("a text of the template is larger than 64 MB");
  if (count <= 0) return *this;
  const size_t total = piece.size() * static_cast<size_t>(count);
  if (total > kMaxTextBytes - text_.size()) fail_limit("a text of the template is larger than 64 MB");
  runtime_.charge_bytes(total);
  if (piece.size() == 1) {
    text_.append(total, piece[0]);
  } else {
    for (int64_t i = 0; i < count; ++i) text_.append(piece);
  }
  return *this;
}

ValueList iterate(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return {};
    case Kind::kString: {
      const std::string& text = value.str();
      runtime.step(kObjectSteps * value.as_text().length);
      ValueList characters;
      for (size_t i = 0; i < text.size();) {
        const size_t start = i;
        next_code_point(text, i);
        characters.push_back(Value::text(text.substr(start, i - start)));
      }
      return characters;
    }
    case Kind::kDict: {
      ValueList keys;
      runtime.step(static_cast<int64_t>(value.as_dict().items.size() / 4));
      for (const auto& item : value.as_dict().items) keys.push_back(item.first);
      return keys;
    }
    case Kind::kIterator: {
      const Sequence& sequence = value.as_sequence();
      const auto start = sequence.items.begin() + static_cast<std::ptrdiff_t>(sequence.consumed);
      sequence.consumed = sequence.items.size();
      runtime.step((sequence.items.end() - start) / 4);
      return ValueList(start, sequence.items.end());
    }
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      runtime.step(static_cast<int64_t>(value.items().size() / 4));
      return value.items();
    default:
      fail("TypeError", "'" + type_name(value) + "' object is not iterable");
  }
}

int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return value.as_text().length;
    case Kind::kDict:
      return static_cast<int64_t>(value.as_dict().items.size());
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      return static_cast<int64_t>(value.items().size());
    default:
      fail("TypeError", "object of type '" + type_name(value) + "' has no len()");
  }
}

void fail_undefined(const Value& value) {
  const Missing* missing = value.missing();
  if (missing == nullptr) fail("UndefinedError", "the value is undefined");
  fail(missing->unsafe ? "SecurityError" : "UndefinedError", missing->message);
}

}  // namespace sluice::jinja
