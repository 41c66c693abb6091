// Construction, truth, equality and hashing of values.
#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "text/jinja/failure.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

constexpr size_t kAbsent = static_cast<size_t>(-1);

void check_size(int depth, int64_t weight) {
  if (depth > kMaxValueDepth) {
    fail_limit("a value is nested deeper than " + std::to_string(kMaxValueDepth) + " levels");
  }
  if (weight > kMaxValueWeight) fail_limit("a value is larger than 64 MB");
}

bool numbers_equal(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
  // long double holds every 64-bit integer exactly.
  const auto wide = [](const Value& v) {
    return v.is_integral() ? static_cast<long double>(v.as_int()) : static_cast<long double>(v.as_real());
  };
  return wide(a) == wide(b);
}

bool items_equal(const ValueList& a, const ValueList& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equals(a[i], b[i])) return false;
  }
  return true;
}

bool dicts_equal(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = b.find(key);
    if (other == nullptr || !equals(value, *other)) return false;
  }
  return true;
}

std::shared_ptr<Sequence> make_sequence(Kind kind, ValueList items) {
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  for (const Value& item : items) {
    sequence->depth = std::max(sequence->depth, 1 + item.depth());
    sequence->weight += item.weight();
  }
  sequence->items = std::move(items);
  check_size(sequence->depth, sequence->weight);
  return sequence;
}

size_t hash_number(const Value& value) {
  if (value.is_integral()) return std::hash<int64_t>()(value.as_int());
  const double d = value.as_real();
  const bool whole = std::abs(d) < 9e18 && d == std::floor(d);
  return whole ? std::hash<int64_t>()(static_cast<int64_t>(d)) : std::hash<double>()(d);
}

}  // namespace

void fail(const char* type, const std::string& message) {
  throw Failure{Failure::Cause::kRuntime, std::string(type) + ": " + message};
}

void fail_limit(const std::string& message) { throw Failure{Failure::Cause::kLimit, message}; }

Value Value::undefined(std::string message, bool unsafe) {
  return Value(Storage(std::make_shared<const Missing>(Missing{std::move(message), unsafe})));
}

Value Value::text(std::string valid_utf8, bool markup) {
  const int64_t length = count_code_points(valid_utf8);
  return Value(Storage(std::make_shared<const Text>(Text{std::move(valid_utf8), length, markup})));
}

Value Value::sequence(Kind kind, ValueList items) {
  return Value(Storage(SequencePtr(make_sequence(kind, std::move(items)))));
}

Value Value::group(Value grouper, Value list) {
  auto pair = make_sequence(Kind::kTuple, {std::move(grouper), std::move(list)});
  pair->is_group = true;
  return Value(Storage(SequencePtr(std::move(pair))));
}

Value Value::view(const char* type_name, ValueList items) {
  auto view = make_sequence(Kind::kView, std::move(items));
  view->view_name = type_name;
  return Value(Storage(SequencePtr(std::move(view))));
}

Kind Value::kind() const {
  switch (storage_.index()) {
    case 0:
      return Kind::kUndefined;
    case 1:
      return Kind::kNone;
    case 2:
      return Kind::kBool;
    case 3:
      return Kind::kInt;
    case 4:
      return Kind::kFloat;
    case 5:
      return Kind::kString;
    case 6:
      return as_sequence().kind;
    case 7:
      return Kind::kDict;
    default:
      return Kind::kObject;
  }
}

int64_t Value::as_int() const {
  if (const bool* b = std::get_if<bool>(&storage_)) return *b ? 1 : 0;
  return std::get<int64_t>(storage_);
}

double Value::as_real() const {
  if (const double* d = std::get_if<double>(&storage_)) return *d;
  return static_cast<double>(as_int());
}

const ValueList& Value::items() const { return as_sequence().items; }

int Value::depth() const {
  if (is_sequence()) return as_sequence().depth;
  return is(Kind::kDict) ? as_dict().depth : 0;
}

int64_t Value::weight() const {
  if (is_string()) return 1 + static_cast<int64_t>(str().size() / 64);
  if (is_sequence()) return as_sequence().weight;
  return is(Kind::kDict) ? as_dict().weight : 1;
}

size_t Dict::index_of(size_t hash, const Value& key) const {
  if (items.size() <= kFewItems) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (equals(items[i].first, key)) return i;
    }
    return kAbsent;
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (equals(items[it->second].first, key)) return it->second;
  }
  return kAbsent;
}

const Value* Dict::find(const Value& key) const {
  const size_t index = index_of(hash_of(key), key);
  return index == kAbsent ? nullptr : &items[index].second;
}

const Value* Dict::find(std::string_view key) const {
  if (items.size() <= kFewItems) {
    for (const auto& [own, value] : items) {
      if (own.is_string() && own.str() == key) return &value;
    }
    return nullptr;
  }
  const auto [begin, end] = index_.equal_range(std::hash<std::string_view>()(key));
  for (auto it = begin; it != end; ++it) {
    const auto& [own, value] = items[it->second];
    if (own.is_string() && own.str() == key) return &value;
  }
  return nullptr;
}

void Dict::set(const Value& key, Value value) {
  depth = std::max({depth, 1 + value.depth(), 1 + key.depth()});
  const size_t hash = hash_of(key);
  const size_t index = index_of(hash, key);
  weight += value.weight() - (index == kAbsent ? -key.weight() : items[index].second.weight());
  check_size(depth, weight);
  if (index != kAbsent) {
    items[index].second = std::move(value);
    return;
  }
  items.emplace_back(key, std::move(value));
  if (items.size() == kFewItems + 1) {
    for (size_t i = 0; i < items.size(); ++i) index_.emplace(hash_of(items[i].first), i);
  } else if (items.size() > kFewItems) {
    index_.emplace(hash, items.size() - 1);
  }
}

Value Object::call(Runtime&, const Arguments&) {
  fail("TypeError", "'" + type_name() + "' object is not callable");
}

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.as_text().markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kRange:
      return "range";
    case Kind::kView:
      return value.as_sequence().view_name;
    case Kind::kIterator:
      return "generator";
    case Kind::kDict:
      return "dict";
    case Kind::kObject:
      return value.as_object().type_name();
  }
  return "object";
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_int() != 0;
    case Kind::kFloat:
      return value.as_real() != 0;
    case Kind::kString:
      return !value.str().empty();
    case Kind::kDict:
      return !value.as_dict().items.empty();
    case Kind::kIterator:
    case Kind::kObject:
      return true;
    default:
      return !value.items().empty();
  }
}

bool equals(const Value& a, const Value& b) {
  if (a.same_as(b) && !a.is(Kind::kFloat)) return true;
  if (a.is_number() && b.is_number()) return numbers_equal(a, b);
  if (a.is_string() && b.is_string()) return a.str() == b.str();
  if (a.is_undefined() && b.is_undefined()) return true;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNone:
      return true;
    case Kind::kDict:
      return dicts_equal(a.as_dict(), b.as_dict());
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      return items_equal(a.items(), b.items());
    default:
      return a.same_as(b);
  }
}

size_t hash_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 1;
    case Kind::kNone:
      return 2;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return hash_number(value);
    case Kind::kString:
      return std::hash<std::string_view>()(value.str());
    case Kind::kTuple: {
      size_t hash = 3;
      for (const Value& item : value.items()) hash = hash * 1000003 + hash_of(item);
      return hash;
    }
    case Kind::kObject:
      return std::hash<const void*>()(&value.as_object());
    default:
      fail("TypeError", "unhashable type: '" + type_name(value) + "'");
  }
}

}  // namespace sluice::jinja
