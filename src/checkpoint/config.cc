// Typed, checked access to the JSON of a checkpoint's configuration files.
#include "checkpoint/config.h"

#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/json.h"

namespace sluice {
namespace {

namespace dom = simdjson::dom;
using internal::describe_type;

constexpr size_t kMaxConfigBytes =
    64'000'000;  // hf_quant_config.json with a line for each module has a few MB

struct Field {
  std::string_view name;
  dom::element value;
};

std::string format_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

// "num_experts (or num_local_experts)".
std::string all_spellings(Config::Names names) {
  std::string text;
  for (const std::string_view name : names) {
    text += text.empty() ? "" : (name == names.begin()[1] ? " (or " : ", ");
    text += name;
  }
  return names.size() > 1 ? text + ")" : text;
}

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw Error(ErrorCode::kBadFile, place + ": " + what);
}

[[noreturn]] void fail_type(const std::string& place, std::string_view expected, const dom::element& value) {
  fail(place, "expected " + std::string(expected) + ", found " + std::string(describe_type(value)));
}

int64_t integer_of(const dom::element& value, const std::string& place) {
  int64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  if (value.is_uint64()) fail(place, "the integer " + std::to_string(uint64_t(value)) + " is too large");
  fail_type(place, "an integer", value);
}

}  // namespace

struct Config::Value {
  std::shared_ptr<const internal::JsonDocument> document;
  dom::object object;

  std::optional<Field> find(Names names) const {
    for (const std::string_view name : names) {
      dom::element value;
      if (object.at_key(name).get(value) == simdjson::SUCCESS && !value.is_null()) return Field{name, value};
    }
    return std::nullopt;
  }
};

namespace {

// Calls use(value, place) for the first spelling that is present.
template <class Value, class Result, class Use>
Result required(const Value* value, Config::Names names, const std::string& prefix, Use use) {
  const auto field = value != nullptr ? value->find(names) : std::nullopt;
  if (!field) throw Error(ErrorCode::kBadFile, prefix + all_spellings(names) + " is missing");
  return use(field->value, prefix + std::string(field->name));
}

}  // namespace

Config::Config() = default;

Config Config::read(const std::filesystem::path& file) {
  return parse(read_text_file(file, kMaxConfigBytes), file.string());
}

Config Config::parse(std::string_view json, std::string file_name) {
  auto document = internal::parse_json_object(json, file_name);
  Config config;
  config.file_ = std::move(file_name);
  config.path_ = config.file_ + ": ";
  const dom::object object(document->root);
  config.value_ = std::make_shared<const Value>(Value{std::move(document), object});
  return config;
}

bool Config::has(Names names) const { return value_ != nullptr && value_->find(names).has_value(); }

int64_t Config::integer(Names names, int64_t low, int64_t high) const {
  return required<Value, int64_t>(value_.get(), names, path_,
                                  [&](const dom::element& value, const std::string& place) {
                                    const int64_t number = integer_of(value, place);
                                    if (number < low || number > high) {
                                      fail(place, std::to_string(number) + " is outside of " +
                                                      std::to_string(low) + " to " + std::to_string(high));
                                    }
                                    return number;
                                  });
}

int64_t Config::integer_or(Names names, int64_t low, int64_t high, int64_t fallback) const {
  return has(names) ? integer(names, low, high) : fallback;
}

double Config::number(Names names, double low, double high) const {
  return required<Value, double>(
      value_.get(), names, path_, [&](const dom::element& value, const std::string& place) {
        double number = 0;
        if (value.get(number) != simdjson::SUCCESS) fail_type(place, "a number", value);
        if (!(number >= low && number <= high)) {
          fail(place,
               format_number(number) + " is outside of " + format_number(low) + " to " + format_number(high));
        }
        return number;
      });
}

double Config::number_or(Names names, double low, double high, double fallback) const {
  return has(names) ? number(names, low, high) : fallback;
}

bool Config::boolean_or(Names names, bool fallback) const {
  if (!has(names)) return fallback;
  return required<Value, bool>(value_.get(), names, path_,
                               [](const dom::element& value, const std::string& place) {
                                 bool result = false;
                                 if (value.get(result) != simdjson::SUCCESS)
                                   fail_type(place, "a boolean", value);
                                 return result;
                               });
}

std::string Config::string(Names names) const {
  return required<Value, std::string>(value_.get(), names, path_,
                                      [](const dom::element& value, const std::string& place) {
                                        std::string_view text;
                                        if (value.get(text) != simdjson::SUCCESS)
                                          fail_type(place, "a string", value);
                                        return std::string(text);
                                      });
}

std::string Config::string_or(Names names, std::string fallback) const {
  return has(names) ? string(names) : fallback;
}

std::vector<int64_t> Config::integers(Names names) const {
  if (!has(names)) return {};
  using Integers = std::vector<int64_t>;
  return required<Value, Integers>(
      value_.get(), names, path_, [](const dom::element& value, const std::string& place) {
        if (value.is_int64() || value.is_uint64()) return Integers{integer_of(value, place)};
        if (!value.is_array()) fail_type(place, "a list of integers", value);
        Integers numbers;
        for (const dom::element item : dom::array(value)) {
          numbers.push_back(integer_of(item, place + "[" + std::to_string(numbers.size()) + "]"));
        }
        return numbers;
      });
}

std::vector<std::string> Config::strings(Names names) const {
  if (!has(names)) return {};
  using Strings = std::vector<std::string>;
  return required<Value, Strings>(
      value_.get(), names, path_, [](const dom::element& value, const std::string& place) {
        if (!value.is_array()) fail_type(place, "a list of strings", value);
        Strings texts;
        for (const dom::element item : dom::array(value)) {
          std::string_view text;
          if (item.get(text) != simdjson::SUCCESS) {
            fail_type(place + "[" + std::to_string(texts.size()) + "]", "a string", item);
          }
          texts.emplace_back(text);
        }
        return texts;
      });
}

Config Config::object(Names names) const {
  Config child;
  child.file_ = file_;
  const auto field = value_ != nullptr ? value_->find(names) : std::nullopt;
  child.path_ = path_ + std::string(field ? field->name : *names.begin()) + ".";
  if (!field) return child;
  dom::object object;
  if (field->value.get(object) != simdjson::SUCCESS) {
    fail(path_ + std::string(field->name),
         "expected an object, found " + std::string(describe_type(field->value)));
  }
  child.value_ = std::make_shared<const Value>(Value{value_->document, object});
  return child;
}

std::vector<std::string> Config::keys() const {
  std::vector<std::string> names;
  if (value_ == nullptr) return names;
  for (const auto& field : value_->object) names.emplace_back(field.key);
  return names;
}

}  // namespace sluice
