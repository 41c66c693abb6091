// Writing JSON as Python's json.dumps does.
#include "text/jinja/json_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "text/jinja/failure.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

class Writer {
 public:
  Writer(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), out_(runtime), style_(style) {}
  void write(const Value& value);
  Value take() { return out_.value(); }

 private:
  void string(std::string_view text);
  void escape(char32_t c);
  void list(const ValueList& items);
  void dict(const Dict& dict);
  void key(const Value& key);
  void new_line();

  Runtime& runtime_;
  TextBuilder out_;
  const JsonStyle& style_;
  int level_ = 0;
};

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_repr(value);
}

void Writer::write(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
      out_.append("null");
      break;
    case Kind::kBool:
      out_.append(value.as_bool() ? "true" : "false");
      break;
    case Kind::kInt:
      out_.append(std::to_string(value.as_int()));
      break;
    case Kind::kFloat:
      out_.append(json_float(value.as_real()));
      break;
    case Kind::kString:
      string(value.str());
      break;
    case Kind::kList:
    case Kind::kTuple:
      list(value.items());
      break;
    case Kind::kDict:
      dict(value.as_dict());
      break;
    default:
      fail("TypeError", "Object of type " + type_name(value) + " is not JSON serializable");
  }
}

void Writer::escape(char32_t c) {
  char buffer[16];
  const auto code = static_cast<unsigned>(c);
  if (code >= 0x10000) {
    const unsigned low = code - 0x10000;
    std::snprintf(buffer, sizeof buffer, "\\u%04x\\u%04x", 0xD800 + (low >> 10), 0xDC00 + (low & 0x3FF));
  } else {
    std::snprintf(buffer, sizeof buffer, "\\u%04x", code);
  }
  out_.append(buffer);
}

void Writer::string(std::string_view text) {
  out_.append('"');
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    switch (c) {
      case '"':
        out_.append("\\\"");
        continue;
      case '\\':
        out_.append("\\\\");
        continue;
      case '\n':
        out_.append("\\n");
        continue;
      case '\r':
        out_.append("\\r");
        continue;
      case '\t':
        out_.append("\\t");
        continue;
      case '\b':
        out_.append("\\b");
        continue;
      case '\f':
        out_.append("\\f");
        continue;
      default:
        break;
    }
    if (c < 0x20 || (style_.ensure_ascii && c > 0x7F)) {
      escape(c);
    } else {
      out_.append(text.substr(start, i - start));
    }
  }
  out_.append('"');
}

void Writer::new_line() {
  if (!style_.indented) return;
  out_.append('\n');
  out_.repeat(style_.indent, level_);
}

void Writer::list(const ValueList& items) {
  if (items.empty()) {
    out_.append("[]");
    return;
  }
  out_.append('[');
  ++level_;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out_.append(style_.item_separator);
    new_line();
    write(items[i]);
  }
  --level_;
  new_line();
  out_.append(']');
}

void Writer::key(const Value& key) {
  switch (key.kind()) {
    case Kind::kString:
      string(key.str());
      return;
    case Kind::kNone:
      string("null");
      return;
    case Kind::kBool:
      string(key.as_bool() ? "true" : "false");
      return;
    case Kind::kInt:
      string(std::to_string(key.as_int()));
      return;
    case Kind::kFloat:
      string(json_float(key.as_real()));
      return;
    default:
      fail("TypeError", "keys must be str, int, float, bool or None, not " + type_name(key));
  }
}

void Writer::dict(const Dict& dict) {
  if (dict.items.empty()) {
    out_.append("{}");
    return;
  }
  std::vector<const std::pair<Value, Value>*> order;
  for (const auto& item : dict.items) order.push_back(&item);
  if (style_.sort_keys) {
    std::stable_sort(order.begin(), order.end(),
                     [&](const auto* a, const auto* b) { return less_than(runtime_, a->first, b->first); });
  }
  out_.append('{');
  ++level_;
  bool first = true;
  for (const auto* item : order) {
    if (!first) out_.append(style_.item_separator);
    first = false;
    new_line();
    key(item->first);
    out_.append(style_.key_separator);
    write(item->second);
  }
  --level_;
  new_line();
  out_.append('}');
}

Value convert(const nlohmann::ordered_json& json, int depth) {
  if (depth > kMaxValueDepth)
    fail_limit("the input is nested deeper than " + std::to_string(kMaxValueDepth) + " levels");
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case nlohmann::ordered_json::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      return number > INT64_MAX ? Value::real(static_cast<double>(number))
                                : Value::integer(static_cast<int64_t>(number));
    }
    case nlohmann::ordered_json::value_t::number_float:
      return Value::real(json.get<double>());
    case nlohmann::ordered_json::value_t::string:
      return Value::text(valid_utf8(json.get_ref<const std::string&>()));
    case nlohmann::ordered_json::value_t::array: {
      ValueList items;
      for (const auto& item : json) items.push_back(convert(item, depth + 1));
      return Value::list(std::move(items));
    }
    case nlohmann::ordered_json::value_t::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& [key, value] : json.items())
        dict->set(Value::text(valid_utf8(key)), convert(value, depth + 1));
      return Value::dict(std::move(dict));
    }
    default:
      return Value::none();
  }
}

}  // namespace

Value to_json_text(Runtime& runtime, const Value& value, const JsonStyle& style) {
  Writer writer(runtime, style);
  writer.write(value);
  return writer.take();
}

Value from_json(const nlohmann::ordered_json& json) { return convert(json, 1); }

}  // namespace sluice::jinja
