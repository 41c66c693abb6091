// Filters that take a sequence as a whole.
#include <algorithm>

#include "text/jinja/access.h"
#include "text/jinja/argument_reader.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/sort_key.h"
#include "text/jinja/unicode.h"

namespace sluice::jinja {
namespace {

Value length(Runtime&, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("length", arguments, {});
  return Value::integer(length_of(input));
}

Value first(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("first", arguments, {});
  if (input.is(Kind::kIterator)) {
    const Sequence& sequence = input.as_sequence();
    if (sequence.consumed < sequence.items.size()) return sequence.items[sequence.consumed++];
  } else if (input.is_sequence() && !input.items().empty()) {
    return input.items().front();
  } else {
    const ValueList items = iterate(runtime, input);
    if (!items.empty()) return items.front();
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("last", arguments, {});
  if (input.is(Kind::kIterator)) fail("TypeError", "'generator' object is not reversible");
  if (input.is_sequence() && !input.items().empty()) return input.items().back();
  const ValueList items = iterate(runtime, input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value join(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("join", arguments, {"d", "attribute"});
  const std::string separator = reader.has(0) ? to_text(runtime, reader[0]) : std::string();
  TextBuilder joined(runtime);
  bool is_first = true;
  for (const Value& item : iterate(runtime, input)) {
    if (!is_first) joined.append(separator);
    is_first = false;
    append_text(joined, reader.given(1) ? get_path(runtime, item, reader[1]) : item);
  }
  return joined.value();
}

Value list(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("list", arguments, {});
  return runtime.list(iterate(runtime, input));
}

Value reverse(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("reverse", arguments, {});
  if (input.is_string()) {
    const Value backwards = Value::integer(-1);
    return get_slice(runtime, input, nullptr, nullptr, &backwards);
  }
  ValueList items = iterate(runtime, input);
  std::reverse(items.begin(), items.end());
  return runtime.iterator(std::move(items));
}

Value sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  auto keyed = keyed_items(runtime, input, reader.get(2, Value()), !reader.flag(1, false));
  sort_by_key(runtime, keyed, reader.flag(0, false));
  ValueList items;
  for (KeyedItem& entry : keyed) items.push_back(std::move(entry.item));
  return runtime.list(std::move(items));
}

Value unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("unique", arguments, {"case_sensitive", "attribute"});
  Dict seen;
  ValueList items;
  for (const KeyedItem& entry : keyed_items(runtime, input, reader.get(1, Value()), !reader.flag(0, false))) {
    if (seen.find(entry.key) != nullptr) continue;
    seen.set(entry.key, Value::none());
    items.push_back(entry.item);
  }
  return runtime.iterator(std::move(items));
}

Value sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("sum", arguments, {"attribute", "start"});
  Value total = reader.get(1, Value::integer(0));
  if (total.is_string()) fail("TypeError", "sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : iterate(runtime, input)) {
    total = apply(runtime, ArithmeticOp::kAdd, total,
                  reader.given(0) ? get_path(runtime, item, reader[0]) : item);
  }
  return total;
}

Value extreme(Runtime& runtime, const char* name, const Value& input, const Arguments& arguments,
              bool largest) {
  const ArgumentReader reader(name, arguments, {"case_sensitive", "attribute"});
  const auto keyed = keyed_items(runtime, input, reader.get(1, Value()), !reader.flag(0, false));
  if (keyed.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const KeyedItem* best = &keyed.front();
  for (const KeyedItem& entry : keyed) {
    if (&entry == best) continue;
    const bool better =
        largest ? less_than(runtime, best->key, entry.key) : less_than(runtime, entry.key, best->key);
    if (better) best = &entry;
  }
  return best->item;
}

Value min(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return extreme(runtime, "min", input, arguments, false);
}

Value max(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return extreme(runtime, "max", input, arguments, true);
}

Value batch(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t size = reader.integer(0, 1);
  ValueList rows, row;
  for (const Value& item : iterate(runtime, input)) {
    if (static_cast<int64_t>(row.size()) == size) rows.push_back(runtime.list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    const int64_t gap = reader.given(1) ? size - static_cast<int64_t>(row.size()) : 0;
    if (gap > kMaxValueWeight) fail_limit("a value is larger than 64 MB");
    for (int64_t i = 0; i < gap; ++i) row.push_back(reader[1]);
    rows.push_back(runtime.list(std::move(row)));
  }
  return runtime.iterator(std::move(rows));
}

Value slice(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("slice", arguments, {"slices", "fill_with"}, 1);
  const ValueList items = iterate(runtime, input);
  const int64_t slices = reader.integer(0, 1);
  if (slices == 0) fail("ZeroDivisionError", "integer division or modulo by zero");
  if (slices > kMaxValueWeight) fail_limit("a value is larger than 64 MB");
  ValueList columns;
  if (slices < 0) return runtime.iterator(std::move(columns));
  const int64_t each = static_cast<int64_t>(items.size()) / slices;
  const int64_t longer = static_cast<int64_t>(items.size()) % slices;
  auto next = items.begin();
  for (int64_t i = 0; i < slices; ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(each + (i < longer ? 1 : 0));
    ValueList column(next, end);
    if (reader.given(1) && i >= longer && longer > 0) column.push_back(reader[1]);
    columns.push_back(runtime.list(std::move(column)));
    next = end;
  }
  return runtime.iterator(std::move(columns));
}

Value group_by(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const bool ignore_case = !reader.flag(2, false);
  const Value otherwise = reader.get(1, Value());
  auto keyed = keyed_items(runtime, input, reader[0], ignore_case, reader.given(1) ? &otherwise : nullptr);
  sort_by_key(runtime, keyed, false);
  ValueList groups;
  for (size_t begin = 0; begin < keyed.size();) {
    size_t end = begin;
    ValueList members;
    for (; end < keyed.size() && runtime.equal(keyed[end].key, keyed[begin].key); ++end) {
      members.push_back(keyed[end].item);
    }
    // The key is shown as the first member has it, not in lower case.
    Value shown = get_path(runtime, members.front(), reader[0]);
    if (shown.is_undefined() && reader.given(1)) shown = otherwise;
    groups.push_back(Value::group(std::move(shown), runtime.list(std::move(members))));
    begin = std::max(end, begin + 1);
  }
  return runtime.list(std::move(groups));
}

ValueList pairs_of(Runtime& runtime, const Dict& dict) {
  runtime.step(kObjectSteps * static_cast<int64_t>(dict.items.size()));
  ValueList pairs;
  for (const auto& [key, value] : dict.items) pairs.push_back(Value::tuple({key, value}));
  return pairs;
}

Value items(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("items", arguments, {});
  if (!input.is_undefined() && !input.is(Kind::kDict))
    fail("TypeError", "Can only get item pairs from a mapping.");
  ValueList pairs;
  if (input.is(Kind::kDict)) pairs = pairs_of(runtime, input.as_dict());
  return runtime.iterator(std::move(pairs));
}

Value dict_sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const ArgumentReader reader("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = reader.string(1, "key");
  if (by != "key" && by != "value")
    fail("FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is(Kind::kDict)) fail("TypeError", "dictsort needs a mapping, not " + type_name(input));
  ValueList pairs = pairs_of(runtime, input.as_dict());
  const Value position = Value::integer(by == "key" ? 0 : 1);
  auto keyed = keyed_items(runtime, runtime.list(std::move(pairs)), position, !reader.flag(0, false));
  sort_by_key(runtime, keyed, reader.flag(2, false));
  ValueList sorted;
  for (KeyedItem& entry : keyed) sorted.push_back(std::move(entry.item));
  return runtime.list(std::move(sorted));
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable kTable = {
      {"length", length},      {"count", length}, {"first", first},      {"last", last},
      {"join", join},          {"list", list},    {"reverse", reverse},  {"sort", sort},
      {"unique", unique},      {"sum", sum},      {"min", min},          {"max", max},
      {"batch", batch},        {"slice", slice},  {"groupby", group_by}, {"items", items},
      {"dictsort", dict_sort},
  };
  return kTable;
}

}  // namespace sluice::jinja
