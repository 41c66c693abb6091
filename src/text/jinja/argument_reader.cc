// Matching arguments to parameters, with Python's words where they do not fit.
#include "text/jinja/argument_reader.h"

#include "text/jinja/failure.h"
#include "text/jinja/runtime.h"

namespace sluice::jinja {

ArgumentReader::ArgumentReader(const char* function, const Arguments& arguments,
                               std::initializer_list<const char*> parameters, size_t required)
    : function_(function), values_(parameters.size(), nullptr) {
  const std::string name = std::string(function) + "()";
  if (arguments.positional.size() > parameters.size()) {
    fail("TypeError", name + " takes at most " + std::to_string(parameters.size()) + " arguments (" +
                          std::to_string(arguments.positional.size()) + " given)");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [key, value] : arguments.named) {
    size_t index = 0;
    for (const char* parameter : parameters) {
      if (key == parameter) break;
      ++index;
    }
    if (index == parameters.size())
      fail("TypeError", name + " got an unexpected keyword argument '" + key + "'");
    if (values_[index] != nullptr)
      fail("TypeError", name + " got multiple values for argument '" + key + "'");
    values_[index] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      fail("TypeError", name + " missing required argument '" + std::string(parameters.begin()[i]) + "'");
    }
  }
}

const Value& ArgumentReader::operator[](size_t index) const { return *values_[index]; }

int64_t ArgumentReader::integer(size_t index, int64_t otherwise) const {
  if (!given(index)) return otherwise;
  const Value& value = *values_[index];
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_integral()) return value.as_int();
  fail("TypeError",
       std::string(function_) + "(): '" + type_name(value) + "' object cannot be interpreted as an integer");
}

bool ArgumentReader::flag(size_t index, bool otherwise) const {
  return has(index) ? truthy(*values_[index]) : otherwise;
}

std::string ArgumentReader::string(size_t index, const std::string& otherwise) const {
  return given(index) ? string(index) : otherwise;
}

const std::string& ArgumentReader::string(size_t index) const {
  if (!has(index)) fail("TypeError", std::string(function_) + "() misses an argument");
  const Value& value = *values_[index];
  if (value.is_undefined() && value.missing() != nullptr) fail_undefined(value);
  if (!value.is_string()) {
    fail("TypeError", std::string(function_) + "() argument must be str, not " + type_name(value));
  }
  return value.str();
}

}  // namespace sluice::jinja
