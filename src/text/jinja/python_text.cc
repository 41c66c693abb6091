// Python's spelling of numbers, strings and containers.
#include "text/jinja/python_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

void append_escape(std::string& text, char32_t c) {
  char buffer[16];
  const auto code = static_cast<unsigned>(c);
  const char* form = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(buffer, sizeof buffer, form, code);
  text += buffer;
}

void append_items(TextBuilder& out, const ValueList& items) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out.append(", ");
    first = false;
    append_repr(out, item);
  }
}

void append_dict(TextBuilder& out, const Dict& dict) {
  out.append('{');
  bool first = true;
  for (const auto& [key, value] : dict.items) {
    if (!first) out.append(", ");
    first = false;
    append_repr(out, key);
    out.append(": ");
    append_repr(out, value);
  }
  out.append('}');
}

void append_sequence(TextBuilder& out, const Value& value) {
  const ValueList& items = value.items();
  switch (value.kind()) {
    case Kind::kTuple:
      out.append('(');
      append_items(out, items);
      out.append(items.size() == 1 ? ",)" : ")");
      break;
    case Kind::kView:
      out.append(value.as_sequence().view_name).append("([");
      append_items(out, items);
      out.append("])");
      break;
    case Kind::kIterator:
      out.append("<generator object>");
      break;
    default:
      out.append('[');
      append_items(out, items);
      out.append(']');
  }
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const double magnitude = std::abs(value);
  // Python writes an exponent below 1e-4 and from 1e16 on.
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, format);
  std::string text(buffer, result.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string string_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string repr(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    switch (c) {
      case '\n':
        repr += "\\n";
        continue;
      case '\r':
        repr += "\\r";
        continue;
      case '\t':
        repr += "\\t";
        continue;
      case '\\':
        repr += "\\\\";
        continue;
      default:
        break;
    }
    if (c == static_cast<char32_t>(quote)) {
      repr += '\\';
      repr += quote;
    } else if (is_printable(c)) {
      repr += text.substr(start, i - start);
    } else {
      append_escape(repr, c);
    }
  }
  return repr + quote;
}

void append_text(TextBuilder& out, const Value& value) {
  if (value.is_string()) {
    out.append(value.str());
  } else if (!value.is_undefined()) {
    append_repr(out, value);
  }
}

void append_repr(TextBuilder& out, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      out.append("Undefined");
      break;
    case Kind::kNone:
      out.append("None");
      break;
    case Kind::kBool:
      out.append(value.as_bool() ? "True" : "False");
      break;
    case Kind::kInt:
      out.append(std::to_string(value.as_int()));
      break;
    case Kind::kFloat:
      out.append(float_repr(value.as_real()));
      break;
    case Kind::kString: {
      const std::string repr = string_repr(value.str());
      out.append(value.as_text().markup ? "Markup(" + repr + ")" : repr);
      break;
    }
    case Kind::kDict:
      append_dict(out, value.as_dict());
      break;
    case Kind::kObject:
      out.append(value.as_object().repr());
      break;
    default:
      append_sequence(out, value);
  }
}

std::string to_text(Runtime& runtime, const Value& value) {
  if (value.is_string()) {
    runtime.charge_bytes(value.str().size());
    return value.str();
  }
  TextBuilder out(runtime);
  append_text(out, value);
  return out.take();
}

}  // namespace sluice::jinja
