// Filters.
#include <gtest/gtest.h>

#include "text/render_template.h"

namespace sluice {
namespace {

using testing::expect_expressions;
using testing::expect_failures;

constexpr const char* kVariables =
    R"({"d": {"a": 1, "b": [1, 2], "c": {"x": null}}, "l": [3, 1, 2], "s": "Hello World",
  "e": [], "ms": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                  {"role": "user", "content": "c"}]})";

TEST(JinjaFilters, WriteJsonAsPythonsDumpsDoes) {
  expect_expressions(
      {{"d | tojson", R"({"a": 1, "b": [1, 2], "c": {"x": null}})"},
       {"[1.0, 1e20, 0.1, none, true] | tojson", "[1.0, 1e+20, 0.1, null, true]"},
       {R"('é<>&\'"\n\u0001\x7f' | tojson)", "\"é<>&'\\\"\\n\\u0001\x7f\""},
       {"'é😀' | tojson(ensure_ascii=true)", R"("\u00e9\ud83d\ude00")"},
       {"{'b': 1, 'a': 2} | tojson(sort_keys=true)", R"({"a": 2, "b": 1})"},
       {"d.b | tojson(separators=(',', ':'))", "[1,2]"},
       {"{1: 2, none: 3, true: 4, 1.5: 5} | tojson", R"({"1": 4, "null": 3, "1.5": 5})"},
       {"{'a': [], 'b': {}} | tojson(indent=1)", "{\n \"a\": [],\n \"b\": {}\n}"},
       {"d | tojson(indent=2)",
        "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\": {\n    \"x\": null\n  }\n}"}},
      kVariables);
  expect_failures(
      {{"missing | tojson", "TypeError: Object of type Undefined is not JSON serializable"},
       {"d.items() | tojson", "TypeError: Object of type dict_items is not JSON serializable"},
       {"[1] | map('int') | tojson", "TypeError: Object of type generator is not JSON serializable"},
       {"{(1, 2): 1} | tojson", "TypeError: keys must be str, int, float, bool or None, not tuple"}},
      kVariables);
}

TEST(JinjaFilters, GiveDefaults) {
  expect_expressions({{"missing | default('q')", "q"},
                      {"none | default('q')", "None"},
                      {"none | default('q', true)", "q"},
                      {"'' | d('q', boolean=true)", "q"},
                      {"missing | default", ""}});
}

TEST(JinjaFilters, ChangeText) {
  expect_expressions({{"s | upper", "HELLO WORLD"},
                      {"5 | lower", "5"},
                      {"'HELLO' | capitalize", "Hello"},
                      {"'hello world-foo (bar' | title", "Hello World-Foo (Bar"},
                      {"\"they're\" | title", "They're"},
                      {"'  x ' | trim", "x"},
                      {"'xxaxx' | trim('x')", "a"},
                      {"s | replace('o', '0', 1)", "Hell0 World"},
                      {"'foo bar baz qux' | truncate(9)", "foo..."},
                      {"'foo bar baz qux' | truncate(9, true)", "foo ba..."},
                      {"'foo bar baz' | truncate(9)", "foo bar baz"},
                      {"'a b_c, d' | wordcount", "3"},
                      {"s | center(15) ~ '|'", "  Hello World  |"},
                      {"'%s-%s' | format(1, 2)", "1-2"},
                      {"'%(a)s' | format(a=1)", "1"},
                      {"'a b/ü?' | urlencode", "a%20b/%C3%BC%3F"},
                      {"s | reverse", "dlroW olleH"},
                      {"1.0 | string ~ 5", "1.05"}},
                     kVariables);
}

TEST(JinjaFilters, IndentLines) {
  expect_expressions({{R"('a\nb\n\nc' | indent)", "a\n    b\n\n    c"},
                      {R"('a\nb' | indent(2, true))", "  a\n  b"},
                      {R"('a\n\nb' | indent(2, blank=true))", "a\n  \n  b"},
                      {R"('a\nb' | indent('>> '))", "a\n>> b"}});
}

TEST(JinjaFilters, EscapeOnceAndWhatIsAddedToEscapedText) {
  expect_expressions({{"'<a>&\"\\'' | escape", "&lt;a&gt;&amp;&#34;&#39;"},
                      {"'<a>' | e | e", "&lt;a&gt;"},
                      {"'<a>' | e | forceescape", "&amp;lt;a&amp;gt;"},
                      {"'<a>' | safe", "<a>"},
                      {"('<a>' | safe) + '<b>'", "<a>&lt;b&gt;"},
                      {"'<b>' + ('<a>' | safe)", "&lt;b&gt;<a>"},
                      {"('<a>' | safe) ~ '<b>'", "<a><b>"}});
}

TEST(JinjaFilters, ConvertNumbers) {
  expect_expressions({{"'3' | int", "3"},
                      {"'3.7' | int", "3"},
                      {"'x' | int(9)", "9"},
                      {"'0x1f' | int(0, 16)", "31"},
                      {"'1_000' | int", "1000"},
                      {"none | int", "0"},
                      {"true | int", "1"},
                      {"'1e3' | float", "1000.0"},
                      {"'x' | float", "0.0"},
                      {"-3.5 | abs", "3.5"},
                      {"2.5 | round", "2.0"},
                      {"3.5 | round", "4.0"},
                      {"2.675 | round(2)", "2.67"},
                      {"42 | round", "42"},
                      {"1250 | round(-2)", "1200"},
                      {"2.1 | round(method='ceil')", "3.0"},
                      {"2.9 | round(0, 'floor')", "2.0"}});
}

TEST(JinjaFilters, TakeSequencesAsAWhole) {
  expect_expressions(
      {{"l | length", "3"},
       {"d | count", "3"},
       {"l | first", "3"},
       {"l | last", "2"},
       {"e | first", ""},
       {"l | join(', ')", "3, 1, 2"},
       {"ms | join('-', attribute='role')", "user-assistant-user"},
       {"'abc' | list", "['a', 'b', 'c']"},
       {"l | reverse | list", "[2, 1, 3]"},
       {"l | sort", "[1, 2, 3]"},
       {"l | sort(reverse=true)", "[3, 2, 1]"},
       {"['b', 'A', 'c'] | sort", "['A', 'b', 'c']"},
       {"['b', 'A', 'c'] | sort(case_sensitive=true)", "['A', 'b', 'c']"},
       {"['b', 'a', 'B'] | sort(case_sensitive=true)", "['B', 'a', 'b']"},
       {"ms | sort(attribute='content', reverse=true) | map(attribute='content') | join", "cba"},
       {"['a', 'A', 'b'] | unique | list", "['a', 'b']"},
       {"l | sum", "6"},
       {"[[1], [2]] | sum(start=[])", "[1, 2]"},
       {"l | min", "1"},
       {"l | max", "3"},
       {"e | max", ""},
       {"[1, 2, 3] | batch(2, 'x') | list", "[[1, 2], [3, 'x']]"},
       {"[1, 2, 3, 4] | slice(3, 'x') | list", "[[1, 2], [3, 'x'], [4, 'x']]"},
       {"d | items | first", "('a', 1)"},
       {"missing | items | list", "[]"},
       {"{'b': 1, 'a': 2} | dictsort", "[('a', 2), ('b', 1)]"},
       {"{'b': 1, 'a': 2} | dictsort(by='value')", "[('b', 1), ('a', 2)]"},
       {"ms | groupby('role') | map(attribute='grouper') | list", "['assistant', 'user']"},
       {"(ms | groupby('role') | last).list | length", "2"}},
      kVariables);
  expect_failures({{"5 | length", "TypeError: object of type 'int' has no len()"},
                   {"[1, 'a'] | sort", "TypeError: '<' not supported between instances of 'str' and 'int'"}});
}

TEST(JinjaFilters, SelectAndMapElements) {
  expect_expressions(
      {{"ms | map(attribute='role') | join(',')", "user,assistant,user"},
       {"ms | map(attribute='zz', default='q') | list", "['q', 'q', 'q']"},
       {"['a', 'b'] | map('upper') | list", "['A', 'B']"},
       {"['aXb'] | map('replace', 'X', '-') | list", "['a-b']"},
       {"ms | selectattr('role', 'equalto', 'user') | map(attribute='content') | list", "['a', 'c']"},
       {"ms | rejectattr('role', '==', 'user') | map(attribute='content') | list", "['b']"},
       {"ms | selectattr('zz', 'defined') | list", "[]"},
       {"[1, 2, 3, 4] | select('even') | list", "[2, 4]"},
       {"[1, 2, 3, 4] | reject('odd') | list", "[2, 4]"},
       {"[0, 1, '', none] | select | list", "[1]"}},
      kVariables);
}

TEST(JinjaFilters, GiveIteratorsThatAreTrueAndWalkedOnce) {
  EXPECT_EQ(testing::render("{% if [1] | select('gt', 9) %}true{% endif %}"), "true");
  EXPECT_EQ(testing::render("{% set g = [1, 2] | map('string') %}{{ g | join }}{{ g | join }}"), "12");
  EXPECT_EQ(testing::render("{% set g = [1, 2] | map('string') %}{{ g | first }}{{ g | join }}"), "12");
  expect_failures({{"[1] | map('int') | length", "TypeError: object of type 'generator' has no len()"}});
}

}  // namespace
}  // namespace sluice
