// Positional and named arguments of a call, matched to the parameters of a built-in.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

class ArgumentReader {
 public:
  /// `function` names the built-in in messages. Throws Failure (TypeError) for an argument that is no
  /// parameter, one too many, or one given twice. Keeps pointers into `arguments`.
  ArgumentReader(const char* function, const Arguments& arguments,
                 std::initializer_list<const char*> parameters, size_t required = 0);

  bool has(size_t index) const { return values_[index] != nullptr; }
  /// Neither left out nor none.
  bool given(size_t index) const { return has(index) && !values_[index]->is(Kind::kNone); }
  const Value& operator[](size_t index) const;  // needs has(index)
  Value get(size_t index, Value otherwise) const { return has(index) ? *values_[index] : otherwise; }

  // `otherwise` where the argument was left out or is none; throw Failure (TypeError) for another type.
  int64_t integer(size_t index, int64_t otherwise) const;
  bool flag(size_t index, bool otherwise) const;
  std::string string(size_t index, const std::string& otherwise) const;
  const std::string& string(size_t index) const;  // the argument must be a string

 private:
  const char* function_;
  std::vector<const Value*> values_;
};

}  // namespace sluice::jinja
