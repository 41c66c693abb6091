// The global functions.
#include "text/jinja/globals.h"

#include "text/jinja/argument_reader.h"
#include "text/jinja/clock.h"
#include "text/jinja/failure.h"
#include "text/jinja/objects.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // of Jinja's sandbox

Value make_range(Runtime& runtime, const Arguments& arguments) {
  const ArgumentReader reader("range", arguments, {"start", "stop", "step"}, 1);
  const bool single = !reader.has(1);
  const int64_t start = single ? 0 : reader.integer(0, 0);
  const int64_t stop = reader.integer(single ? 0 : 1, 0);
  const int64_t step = reader.integer(2, 1);
  if (step == 0) fail("ValueError", "range() arg 3 must not be zero");
  ValueList items;
  int64_t i = start;
  while (step > 0 ? i < stop : i > stop) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) {
      fail("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    }
    items.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return runtime.sequence(Kind::kRange, std::move(items));
}

// dict(mapping or pairs, **named)
void fill_dict(Runtime& runtime, const Arguments& arguments, Dict& dict) {
  if (arguments.positional.size() > 1) {
    fail("TypeError", "dict expected at most 1 argument, got " + std::to_string(arguments.positional.size()));
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Kind::kDict)) {
      runtime.step(source.weight());
      dict = source.as_dict();
    } else {
      for (const Value& pair : iterate(runtime, source)) {
        const ValueList items = iterate(runtime, pair);
        if (items.size() != 2) fail("ValueError", "dictionary update sequence needs elements of length 2");
        runtime.step(kObjectSteps + items[0].weight());
        dict.set(items[0], items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) dict.set(Value::text(name), value);
}

Value make_dict(Runtime& runtime, const Arguments& arguments) {
  auto dict = std::make_shared<Dict>();
  fill_dict(runtime, arguments, *dict);
  return Value::dict(std::move(dict));
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  auto object = std::make_shared<Namespace>();
  fill_dict(runtime, arguments, object->attributes);
  runtime.own_namespace(object);
  return Value::object(std::move(object));
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const ArgumentReader reader("raise_exception", arguments, {"message"}, 1);
  throw Failure{Failure::Cause::kRaised, to_text(runtime, reader[0])};
}

Value strftime_now(Runtime& runtime, const Arguments& arguments) {
  const ArgumentReader reader("strftime_now", arguments, {"format"}, 1);
  return runtime.text(valid_utf8(format_now(reader.string(0))));
}

// joiner(", "): nothing on the first call, then the separator.
struct Joiner : Object {
  explicit Joiner(std::string s) : separator(std::move(s)) {}
  std::string type_name() const override { return "Joiner"; }
  std::string repr() const override { return "<Joiner>"; }
  bool callable() const override { return true; }
  Value call(Runtime&, const Arguments&) override {
    const bool first = !std::exchange(used, true);
    return Value::text(first ? std::string() : separator);
  }
  std::string separator;
  bool used = false;
};

// cycler("odd", "even"): next(), current and reset().
struct Cycler : Object, std::enable_shared_from_this<Cycler> {
  explicit Cycler(ValueList v) : items(std::move(v)) {}
  std::string type_name() const override { return "Cycler"; }
  std::string repr() const override { return "<Cycler>"; }
  bool attribute(Runtime&, std::string_view name, Value& value) override {
    if (name == "current") {
      value = items[position];
    } else if (name == "next") {
      value = make_function("next", [self = shared_from_this()](Runtime&, const Arguments&) {
        const size_t at = self->position;
        self->position = (at + 1) % self->items.size();
        return self->items[at];
      });
    } else if (name == "reset") {
      value = make_function("reset", [self = shared_from_this()](Runtime&, const Arguments&) {
        self->position = 0;
        return Value::none();
      });
    } else {
      return false;
    }
    return true;
  }
  ValueList items;
  size_t position = 0;
};

Value make_joiner(Runtime&, const Arguments& arguments) {
  const ArgumentReader reader("joiner", arguments, {"sep"});
  return Value::object(std::make_shared<Joiner>(reader.string(0, ", ")));
}

Value make_cycler(Runtime&, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("TypeError", "at least one item has to be provided");
  return Value::object(std::make_shared<Cycler>(arguments.positional));
}

}  // namespace

const std::vector<std::pair<std::string, Value>>& global_functions() {
  static const std::vector<std::pair<std::string, Value>> kFunctions = [] {
    std::vector<std::pair<std::string, Value>> functions;
    const auto add = [&](const char* name, Function::Body body) {
      functions.emplace_back(name, make_function(name, std::move(body)));
    };
    add("range", make_range);
    add("dict", make_dict);
    add("namespace", make_namespace);
    add("joiner", make_joiner);
    add("cycler", make_cycler);
    add("raise_exception", raise_exception);
    add("strftime_now", strftime_now);
    return functions;
  }();
  return kFunctions;
}

}  // namespace sluice::jinja
