// Values of the Jinja interpreter: Python's types as chat templates meet them. Everything but a namespace is
// immutable (the reference renders in Jinja's immutable sandbox), so values are shared freely.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::jinja {

class Value;
class Runtime;
struct Arguments;
using ValueList = std::vector<Value>;

// Containers nested deeper are refused: comparing, printing and freeing a value recurse.
inline constexpr int kMaxValueDepth = 100;
// Lists that share parts can stand for far more elements than they store ([x, x] in a loop), so a value also
// knows its weight as if written out: one unit an element and one for every 64 bytes of text. 4 M elements of
// 16 bytes: 64 MB.
inline constexpr int64_t kMaxValueWeight = int64_t{4} << 20;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kRange,
  kView,
  kIterator,  // kinds of Sequence
  kDict,
  kObject,
};

/// Why a value is undefined: the message that its use raises.
struct Missing {
  std::string message;
  bool unsafe = false;  // an attribute that the sandbox hides: raises SecurityError
};

struct Text {
  std::string utf8;     // always valid
  int64_t length = 0;   // in characters
  bool markup = false;  // result of `safe` or `escape`: `+` escapes what is added to it
};

struct Sequence;
struct Dict;
struct Object;

class Value {
 public:
  Value() = default;  // undefined without a name
  static Value undefined(std::string message, bool unsafe = false);
  static Value none() { return Value(Storage(std::in_place_index<1>)); }
  static Value boolean(bool b) { return Value(Storage(b)); }
  static Value integer(int64_t i) { return Value(Storage(i)); }
  static Value real(double d) { return Value(Storage(d)); }
  static Value text(std::string valid_utf8, bool markup = false);
  /// Throws Failure past kMaxValueDepth and kMaxValueWeight.
  static Value sequence(Kind kind, ValueList items);
  static Value list(ValueList items) { return sequence(Kind::kList, std::move(items)); }
  static Value tuple(ValueList items) { return sequence(Kind::kTuple, std::move(items)); }
  /// What `groupby` yields: the pair (grouper, list), whose parts are attributes too.
  static Value group(Value grouper, Value list);
  /// What dict.keys(), .values() and .items() give; `type_name` is a literal such as "dict_keys".
  static Value view(const char* type_name, ValueList items);
  static Value dict(std::shared_ptr<const Dict> dict) { return Value(Storage(std::move(dict))); }
  static Value object(std::shared_ptr<Object> object) { return Value(Storage(std::move(object))); }

  Kind kind() const;
  bool is(Kind k) const { return kind() == k; }
  bool is_undefined() const { return storage_.index() == 0; }
  bool is_string() const { return std::holds_alternative<TextPtr>(storage_); }
  bool is_sequence() const { return std::holds_alternative<SequencePtr>(storage_); }
  bool is_number() const {
    return storage_.index() >= 2 && storage_.index() <= 4;
  }  // bool included, as in Python
  bool is_integral() const { return storage_.index() == 2 || storage_.index() == 3; }

  // Each needs the matching kind.
  const Missing* missing() const { return std::get<0>(storage_).get(); }
  bool as_bool() const { return std::get<bool>(storage_); }
  int64_t as_int() const;  // of an int or a bool
  double as_real() const;  // of any number
  const Text& as_text() const { return *std::get<TextPtr>(storage_); }
  const std::string& str() const { return as_text().utf8; }
  const Sequence& as_sequence() const { return *std::get<SequencePtr>(storage_); }
  const ValueList& items() const;
  const Dict& as_dict() const { return *std::get<DictPtr>(storage_); }
  Object& as_object() const { return *std::get<ObjectPtr>(storage_); }

  /// The same object, not an equal one (`is sameas`).
  bool same_as(const Value& other) const { return storage_ == other.storage_; }
  int depth() const;
  int64_t weight() const;  // work to compare, hash or print it; at least 1

 private:
  using TextPtr = std::shared_ptr<const Text>;
  using SequencePtr = std::shared_ptr<const Sequence>;
  using DictPtr = std::shared_ptr<const Dict>;
  using ObjectPtr = std::shared_ptr<Object>;
  using Storage = std::variant<std::shared_ptr<const Missing>, std::monostate, bool, int64_t, double, TextPtr,
                               SequencePtr, DictPtr, ObjectPtr>;
  explicit Value(Storage storage) : storage_(std::move(storage)) {}
  Storage storage_;
};

/// list, tuple, range, dict view and iterator. An iterator is what filters such as `map` and `select` return:
/// true whatever it holds, without length or index, and empty once it was walked.
struct Sequence {
  Kind kind = Kind::kList;
  ValueList items;
  int depth = 1;
  int64_t weight = 1;
  bool is_group = false;        // what `groupby` yields: a pair with the attributes grouper and list
  const char* view_name = "";   // views only
  mutable size_t consumed = 0;  // iterators only
};

/// A dict in insertion order. Keys are compared as Python does: 1, 1.0 and True are one key.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  int depth = 1;
  int64_t weight = 1;

  const Value* find(const Value& key) const;  // Throws Failure (TypeError) if `key` has no hash.
  const Value* find(std::string_view key) const;
  void set(const Value& key, Value value);

 private:
  // Most dicts have a few keys, among which looking beats hashing.
  static constexpr size_t kFewItems = 8;
  size_t index_of(size_t hash, const Value& key) const;
  std::unordered_multimap<size_t, size_t> index_;  // by hash; empty up to kFewItems
};

/// What is neither data nor number: functions, macros, namespaces, the loop variable.
struct Object {
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual std::string repr() const = 0;
  virtual bool callable() const { return false; }
  /// Throws Failure; the default says that the object is not callable.
  virtual Value call(Runtime& runtime, const Arguments& arguments);
  /// False: no such attribute.
  virtual bool attribute(Runtime&, std::string_view, Value&) { return false; }
};

/// Arguments of a call.
struct Arguments {
  ValueList positional;
  std::vector<std::pair<std::string, Value>> named;
};

std::string type_name(const Value& value);  // as Python spells it: "NoneType", "str"
bool truthy(const Value& value);
/// Python's ==. Numbers compare by value across types.
bool equals(const Value& a, const Value& b);
/// Throws Failure (TypeError) for what has no hash.
size_t hash_of(const Value& value);

}  // namespace sluice::jinja
