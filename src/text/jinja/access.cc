// Lookup of attributes, items and slices.
#include "text/jinja/access.h"

#include <algorithm>

#include "text/jinja/failure.h"
#include "text/jinja/methods.h"
#include "text/jinja/python_text.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

std::string described(const Value& object) {
  return object.is(Kind::kNone) ? "None" : type_name(object) + " object";
}

Value no_attribute(const Value& object, std::string_view name) {
  return Value::undefined("'" + described(object) + "' has no attribute " + string_repr(name));
}

Value no_item(Runtime& runtime, const Value& object, const Value& index) {
  if (index.is_string()) return no_attribute(object, index.str());
  TextBuilder message(runtime);
  message.append(described(object)).append(" has no element ");
  append_repr(message, index);
  return Value::undefined(message.take());
}

// What Python's getattr finds; the sandbox hides what would change the object or look behind it.
bool find_attribute(Runtime& runtime, const Value& object, const std::string& name, Value& value) {
  const bool internal = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
  if (internal || is_mutating_method(object.kind(), name)) {
    value = Value::undefined("access to attribute " + string_repr(name) + " of " +
                                 string_repr(type_name(object)) + " object is unsafe.",
                             true);
    return true;
  }
  if (object.is(Kind::kObject)) return object.as_object().attribute(runtime, name, value);
  if (object.is_sequence() && object.as_sequence().is_group && (name == "grouper" || name == "list")) {
    value = object.items()[name == "grouper" ? 0 : 1];
    return true;
  }
  return find_method(object, name, value);
}

bool find_item(const Value& object, const Value& index, Value& value) {
  if (object.is(Kind::kDict)) {
    const Kind kind = index.kind();
    if (kind == Kind::kList || kind == Kind::kDict || kind == Kind::kView) return false;  // no hash
    const Value* found = object.as_dict().find(index);
    if (found != nullptr) value = *found;
    return found != nullptr;
  }
  if (!index.is_integral()) return false;
  int64_t i = index.as_int();
  if (object.is_string()) {
    const Text& text = object.as_text();
    if (i < 0) i += text.length;
    if (i < 0 || i >= text.length) return false;
    value = Value::text(substring(text, i, 1));
    return true;
  }
  if (!object.is_sequence() || object.is(Kind::kIterator) || object.is(Kind::kView)) return false;
  const auto size = static_cast<int64_t>(object.items().size());
  if (i < 0) i += size;
  if (i < 0 || i >= size) return false;
  value = object.items()[static_cast<size_t>(i)];
  return true;
}

// One bound of a slice, clamped as Python does for the direction of `step`.
int64_t bound(const Value* value, int64_t size, int64_t step, int64_t otherwise) {
  if (value == nullptr || value->is(Kind::kNone)) return otherwise;
  if (value->is_undefined()) fail_undefined(*value);
  if (!value->is_integral()) {
    fail("TypeError", "slice indices must be integers or None or have an __index__ method");
  }
  int64_t i = value->as_int();
  if (i < 0) i = std::max<int64_t>(i + size, step < 0 ? -1 : 0);
  return std::min(i, step < 0 ? size - 1 : size);
}

struct SliceRange {
  int64_t start, step, count;
};

SliceRange slice_range(int64_t size, const Value* start, const Value* stop, const Value* step) {
  int64_t stride = 1;
  if (step != nullptr && !step->is(Kind::kNone)) {
    if (step->is_undefined()) fail_undefined(*step);
    if (!step->is_integral()) {
      fail("TypeError", "slice indices must be integers or None or have an __index__ method");
    }
    stride = step->as_int();
  }
  if (stride == 0) fail("ValueError", "slice step cannot be zero");
  // Past these a step only ever takes the first element; the clamp keeps the sums below in range.
  stride = std::clamp<int64_t>(stride, -(int64_t{1} << 40), int64_t{1} << 40);
  const int64_t from = bound(start, size, stride, stride < 0 ? size - 1 : 0);
  const int64_t to = bound(stop, size, stride, stride < 0 ? -1 : size);
  int64_t count = 0;
  if (stride > 0 && from < to) count = (to - from + stride - 1) / stride;
  if (stride < 0 && from > to) count = (from - to - stride - 1) / -stride;
  return {from, stride, count};
}

std::string slice_text(const Text& text, const SliceRange& range) {
  if (range.count <= 0) return {};
  if (range.step == 1) return substring(text, range.start, range.count);
  std::vector<size_t> starts;  // byte offset of each character, and the end
  for (size_t i = 0; i < text.utf8.size(); next_code_point(text.utf8, i)) starts.push_back(i);
  starts.push_back(text.utf8.size());
  std::string result;
  for (int64_t k = 0; k < range.count; ++k) {
    const auto i = static_cast<size_t>(range.start + k * range.step);
    result.append(text.utf8, starts[i], starts[i + 1] - starts[i]);
  }
  return result;
}

}  // namespace

std::string substring(const Text& text, int64_t begin, int64_t count) {
  if (text.length == static_cast<int64_t>(text.utf8.size())) {
    return text.utf8.substr(static_cast<size_t>(begin), static_cast<size_t>(count));
  }
  const std::string_view rest = std::string_view(text.utf8).substr(byte_offset(text.utf8, begin));
  return std::string(rest.substr(0, byte_offset(rest, count)));
}

Value get_attribute(Runtime& runtime, const Value& object, const std::string& name) {
  if (object.is_undefined()) fail_undefined(object);
  Value value;
  if (find_attribute(runtime, object, name, value)) return value;
  if (object.is(Kind::kDict)) {
    const Value* found = object.as_dict().find(name);
    if (found != nullptr) return *found;
  }
  return no_attribute(object, name);
}

Value get_item(Runtime& runtime, const Value& object, const Value& index) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is_string()) runtime.charge_bytes(object.str().size());
  runtime.step(index.weight());  // hashing or comparing it
  Value value;
  if (find_item(object, index, value)) return value;
  if (index.is_string() && find_attribute(runtime, object, index.str(), value)) return value;
  return no_item(runtime, object, index);
}

Value get_slice(Runtime& runtime, const Value& object, const Value* start, const Value* stop,
                const Value* step) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is_string()) {
    const Text& text = object.as_text();
    runtime.charge_bytes(text.utf8.size());
    return runtime.text(slice_text(text, slice_range(text.length, start, stop, step)), text.markup);
  }
  if (!object.is_sequence() || object.is(Kind::kIterator) || object.is(Kind::kView)) {
    return Value::undefined(described(object) + " can't be sliced");
  }
  const SliceRange range = slice_range(static_cast<int64_t>(object.items().size()), start, stop, step);
  ValueList items;
  for (int64_t k = 0; k < range.count; ++k) {
    items.push_back(object.items()[static_cast<size_t>(range.start + k * range.step)]);
  }
  return runtime.sequence(object.kind(), std::move(items));
}

Value get_path(Runtime& runtime, const Value& object, const Value& path) {
  if (!path.is_string()) return get_item(runtime, object, path);
  Value value = object;
  const std::string& text = path.str();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const bool number =
        !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == std::string::npos;
    value = get_item(runtime, value, number ? Value::integer(std::stoll(part)) : Value::text(part));
    runtime.step();
    begin = end + 1;
  }
  return value;
}

}  // namespace sluice::jinja
