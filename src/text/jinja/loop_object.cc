// Attributes of `loop`.
#include "text/jinja/loop_object.h"

#include "text/jinja/failure.h"
#include "text/jinja/objects.h"
#include "text/jinja/runtime.h"

namespace sluice::jinja {
namespace {

Value cycle(size_t index, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("TypeError", "no items for cycling given");
  return arguments.positional[index % arguments.positional.size()];
}

}  // namespace

std::string LoopObject::repr() const {
  return "<LoopContext " + std::to_string(index + 1) + "/" + std::to_string(items.size()) + ">";
}

Value LoopObject::call(Runtime&, const Arguments& arguments) {
  if (!recurse) fail("TypeError", "The loop must have the 'recursive' marker to be called recursively.");
  if (arguments.positional.size() != 1) fail("TypeError", "loop() takes one argument");
  return recurse(arguments.positional[0]);
}

bool LoopObject::changed(Runtime& runtime, const ValueList& values) {
  Value now = runtime.sequence(Kind::kTuple, values);
  const bool differs = last_changed_.is_undefined() || !runtime.equal(last_changed_, now);
  last_changed_ = std::move(now);
  return differs;
}

bool LoopObject::attribute(Runtime&, std::string_view name, Value& value) {
  const auto position = static_cast<int64_t>(index);
  const auto length = static_cast<int64_t>(items.size());
  if (name == "index") {
    value = Value::integer(position + 1);
  } else if (name == "index0") {
    value = Value::integer(position);
  } else if (name == "revindex") {
    value = Value::integer(length - position);
  } else if (name == "revindex0") {
    value = Value::integer(length - position - 1);
  } else if (name == "first") {
    value = Value::boolean(position == 0);
  } else if (name == "last") {
    value = Value::boolean(position + 1 == length);
  } else if (name == "length") {
    value = Value::integer(length);
  } else if (name == "depth") {
    value = Value::integer(depth);
  } else if (name == "depth0") {
    value = Value::integer(depth - 1);
  } else if (name == "previtem") {
    value = position > 0 ? items[index - 1] : Value::undefined("there is no previous item");
  } else if (name == "nextitem") {
    value = position + 1 < length ? items[index + 1] : Value::undefined("there is no next item");
  } else if (name == "cycle") {
    value = make_function(
        "cycle", [at = index](Runtime&, const Arguments& arguments) { return cycle(at, arguments); });
  } else if (name == "changed") {
    // A weak reference: the arguments that the loop remembers may hold this function.
    value = make_function("changed", [weak = weak_from_this()](Runtime& runtime, const Arguments& arguments) {
      const auto loop = weak.lock();
      if (loop == nullptr) fail("TypeError", "the loop of this function has ended");
      return Value::boolean(loop->changed(runtime, arguments.positional));
    });
  } else {
    return false;
  }
  return true;
}

}  // namespace sluice::jinja
