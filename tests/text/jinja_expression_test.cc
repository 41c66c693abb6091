// Expressions: numbers, operators, undefined values, access to attributes and items.
#include <gtest/gtest.h>

#include "text/render_template.h"

namespace sluice {
namespace {

using testing::expect_expressions;
using testing::expect_failures;
using testing::render;

constexpr const char* kVariables =
    R"({"d": {"a": 1, "b": [1, 2, 3], "items": "it", "c": {"x": null}}, "l": [3, 1, 2],
  "s": "Hello World", "u": "h\u00e9llo \u2713", "e": [], "ms": [{"role": "user"}, {"role": "assistant"}]})";

TEST(JinjaExpressions, FollowPythonsArithmetic) {
  expect_expressions({{"1 + 2 * 3", "7"},
                      {"7 // 2", "3"},
                      {"-7 // 2", "-4"},
                      {"7 % 3", "1"},
                      {"-7 % 3", "2"},
                      {"7 % -3", "-2"},
                      {"2 ** 10", "1024"},
                      {"2 ** -1", "0.5"},
                      {"6 / 2", "3.0"},
                      {"10 - 3 - 2", "5"},
                      {"2 ** 3 ** 2", "64"},
                      {"-2 ** 2", "4"},
                      {"-5 | abs", "5"},
                      {"-10.5 % 3", "1.5"},
                      {"7.0 // -2", "-4.0"},
                      {"true + 1", "2"},
                      {"'ab' * 3", "ababab"},
                      {"[1] * 2", "[1, 1]"},
                      {"(1,) + (2,)", "(1, 2)"},
                      {"(1 + 2) ~ 3", "33"},
                      {"'a' ~ 1 ~ none ~ true", "a1NoneTrue"}});
  // `~` binds tighter than `+`.
  expect_failures({{"1 + 2 ~ 3", "TypeError: unsupported operand type(s) for +: 'int' and 'str'"}});
}

TEST(JinjaExpressions, WriteNumbersAsPythonDoes) {
  expect_expressions({{"1e16", "1e+16"},
                      {"1e15", "1000000000000000.0"},
                      {"0.0001", "0.0001"},
                      {"0.00001", "1e-05"},
                      {"0.1 + 0.2", "0.30000000000000004"},
                      {"1.0", "1.0"},
                      {"-0.0", "-0.0"},
                      {"1_000", "1000"},
                      {"0x1F", "31"},
                      {"0b101", "5"},
                      {"0o17", "15"},
                      {"5e-324", "5e-324"},
                      {"1.7976931348623157e308", "1.7976931348623157e+308"}});
}

TEST(JinjaExpressions, WriteContainersAsPythonDoes) {
  expect_expressions({{"[1, 'a', none, true, 1.5]", "[1, 'a', None, True, 1.5]"},
                      {"(1,)", "(1,)"},
                      {"()", "()"},
                      {"1, 2", "(1, 2)"},
                      {"{1: 2, 'x': {}}", "{1: 2, 'x': {}}"},
                      {"[\"it's\"]", "[\"it's\"]"},
                      {"['a\"b\\'c']", R"(['a"b\'c'])"},
                      {"['\\x01', '\\n', '\\u200b', '\u00e9']", R"(['\x01', '\n', '\u200b', 'é'])"},
                      {"[missing]", "[Undefined]"},
                      {"d.keys()", "dict_keys(['a', 'b', 'items', 'c'])"}},
                     kVariables);
}

TEST(JinjaExpressions, CompareAsPythonDoes) {
  expect_expressions({{"1 < 2 < 3", "True"},
                      {"1 < 2 > 3", "False"},
                      {"1 == 1.0", "True"},
                      {"true == 1", "True"},
                      {"'a' < 'b'", "True"},
                      {"[1, 2] < [1, 3]", "True"},
                      {"(1, 2) == [1, 2]", "False"},
                      {"none == none", "True"},
                      {"{'a': 1} == {'a': 1.0}", "True"},
                      {"1 in [1, 2]", "True"},
                      {"4 not in l", "True"},
                      {"'ell' in s", "True"},
                      {"'a' in d", "True"},
                      {"not 1", "False"},
                      {"0 or 'x'", "x"},
                      {"e or 'empty'", "empty"},
                      {"l and e", "[]"},
                      {"not s is string", "False"}},
                     kVariables);
}

TEST(JinjaExpressions, ChooseInline) {
  expect_expressions({{"1 if true else 2", "1"},
                      {"1 if false", ""},
                      {"'x' if 0 else 'y' if 0 else 'z'", "z"},
                      {"(1 if false) is defined", "False"}});
}

TEST(JinjaExpressions, LetUndefinedPrintAsNothingAndRefuseEverythingElse) {
  expect_expressions({{"missing", ""},
                      {"missing ~ 'x'", "x"},
                      {"missing == none", "False"},
                      {"missing == also_missing", "True"},
                      {"missing is defined", "False"},
                      {"'x' in missing", "False"},
                      {"missing in [1]", "False"},
                      {"missing | length", "0"},
                      {"missing | list", "[]"},
                      {"missing | upper", ""},
                      {"(d.zz.a is defined) if d.zz else 'no'", "no"},
                      {"(d.zz or {}).a", ""}},
                     kVariables);
  expect_failures({{"missing.foo", "UndefinedError: 'missing' is undefined"},
                   {"missing[0]", "UndefinedError: 'missing' is undefined"},
                   {"missing()", "UndefinedError: 'missing' is undefined"},
                   {"missing + 1", "UndefinedError: 'missing' is undefined"},
                   {"-missing", "UndefinedError: 'missing' is undefined"},
                   {"missing < 1", "UndefinedError: 'missing' is undefined"},
                   {"missing | int", "UndefinedError: 'missing' is undefined"},
                   {"d.zz.y", "UndefinedError: 'dict object' has no attribute 'zz'"},
                   {"l[9].y", "UndefinedError: list object has no element 9"},
                   {"none.x.y", "UndefinedError: 'None' has no attribute 'x'"},
                   {"s.foo()", "UndefinedError: 'str object' has no attribute 'foo'"}},
                  kVariables);
}

TEST(JinjaExpressions, LookForMethodsBeforeItemsWithADotAndAfterThemInBrackets) {
  expect_expressions({{"d.a", "1"},
                      {"d['a']", "1"},
                      {"d['items']", "it"},
                      {"d.items is callable", "True"},
                      {"d['keys'] is callable", "True"},
                      {"d.items() | length", "4"},
                      {"d.items()[0]", ""},
                      {"d.c.x", "None"},
                      {"ms.0.role", "user"},
                      {"ms[-1]['role']", "assistant"},
                      {"{'a': {'b': {'c': 1}}}.a.b.c", "1"},
                      {"l[true]", "1"},
                      {"l[1.0]", ""},
                      {"d[[]]", ""}},
                     kVariables);
}

TEST(JinjaExpressions, SliceListsAndTextByCharacters) {
  expect_expressions({{"l[1:]", "[1, 2]"},
                      {"l[:-1]", "[3, 1]"},
                      {"l[::-1]", "[2, 1, 3]"},
                      {"l[::2]", "[3, 2]"},
                      {"l[5:]", "[]"},
                      {"l[-2:]", "[1, 2]"},
                      {"l[2:0:-1]", "[2, 1]"},
                      {"u[1]", "é"},
                      {"u[1:3]", "él"},
                      {"u[::-1]", "✓ olléh"},
                      {"u | length", "7"},
                      {"s[100]", ""},
                      {"s[-5:]", "World"},
                      {"s[::9223372036854775807]", "H"},
                      {"l[-9223372036854775807:9223372036854775807]", "[3, 1, 2]"}},
                     kVariables);
  expect_failures(
      {{"l[0:2:0]", "ValueError: slice step cannot be zero"},
       {"s['a':]", "TypeError: slice indices must be integers or None or have an __index__ method"}},
      kVariables);
}

TEST(JinjaExpressions, DecodeEscapesInStrings) {
  expect_expressions({{R"('a\tb')", "a\tb"},
                      {R"('\x41\u00e9\101')", "AéA"},
                      {R"('\U0001F600')", "😀"},
                      {R"('\d')", "\\d"},
                      {R"('it\'s')", "it's"},
                      {R"('a' "b" 'c')", "abc"},
                      {"'a\\\nb'", "ab"},
                      {R"('\\n')", "\\n"}});
}

TEST(JinjaExpressions, RefuseWhatPythonRefuses) {
  expect_failures({{"1 + 'a'", "TypeError: unsupported operand type(s) for +: 'int' and 'str'"},
                   {"'a' + 1", "TypeError: can only concatenate str (not \"int\") to str"},
                   {"[] + 1", "TypeError: can only concatenate list (not \"int\") to list"},
                   {"1 < 'a'", "TypeError: '<' not supported between instances of 'int' and 'str'"},
                   {"'a' >= 1", "TypeError: '>=' not supported between instances of 'str' and 'int'"},
                   {"1 in none", "TypeError: argument of type 'NoneType' is not iterable"},
                   {"1 in 'abc'", "TypeError: 'in <string>' requires string as left operand, not int"},
                   {"1 / 0", "ZeroDivisionError: division by zero"},
                   {"5(3)", "TypeError: 'int' object is not callable"},
                   {"{[]: 1}", "TypeError: unhashable type: 'list'"},
                   {"5 | nofilter", "TemplateRuntimeError: No filter named 'nofilter'."},
                   {"5 is notest", "TemplateRuntimeError: No test named 'notest'."}});
}

TEST(JinjaExpressions, HideWhatTheImmutableSandboxHides) {
  expect_failures(
      {{"l.append(4)", "SecurityError: access to attribute 'append' of 'list' object is unsafe."},
       {"d.update({})", "SecurityError: access to attribute 'update' of 'dict' object is unsafe."},
       {"d.pop('a')", "SecurityError: access to attribute 'pop' of 'dict' object is unsafe."},
       {"s.__class__.x", "SecurityError: access to attribute '__class__' of 'str' object is unsafe."}},
      kVariables);
  expect_expressions({{"l.append", ""}, {"''.__class__", ""}}, kVariables);
}

TEST(JinjaExpressions, TestKindsAsJinjaDoes) {
  expect_expressions({{"l is iterable", "True"},
                      {"5 is iterable", "False"},
                      {"s is iterable", "True"},
                      {"d is mapping", "True"},
                      {"l is mapping", "False"},
                      {"d is sequence", "True"},
                      {"d.items() is sequence", "False"},
                      {"true is number", "True"},
                      {"true is integer", "False"},
                      {"5 is integer", "True"},
                      {"5.0 is float", "True"},
                      {"true is boolean", "True"},
                      {"1 is true", "False"},
                      {"false is false", "True"},
                      {"none is none", "True"},
                      {"3 is odd", "True"},
                      {"4 is even", "True"},
                      {"9 is divisibleby 3", "True"},
                      {"9 is divisibleby(2)", "False"},
                      {"5 is eq 5", "True"},
                      {"5 is gt 3", "True"},
                      {"5 is in [5]", "True"},
                      {"range is callable", "True"},
                      {"'abc' is lower", "True"},
                      {"5 is not none", "True"},
                      {"5 is sameas 5", "True"},
                      {"'upper' is filter", "True"},
                      {"'x' is test", "False"},
                      {"('a' | safe) is escaped", "True"}},
                     kVariables);
}

// Small dicts are walked, larger ones hashed.
TEST(JinjaExpressions, FindTheKeysOfDictsOfEverySize) {
  for (int size = 0; size < 20; ++size) {
    std::string literal = "{", found;
    for (int i = 0; i < size; ++i) {
      literal += "'k" + std::to_string(i) + "': " + std::to_string(i) + ", ";
      found += std::to_string(i) + ' ';
    }
    SCOPED_TRACE(size);
    const std::string source = "{% set d = " + literal + "1: 'one', 'k3': 'again'} %}";
    std::string all = source;
    for (int i = 0; i < size; ++i) all += "{{ d.k" + std::to_string(i) + " }} ";
    if (size > 3) found.replace(found.find('3'), 1, "again");
    EXPECT_EQ(render(all), found);
    EXPECT_EQ(render(source + "{{ d[True] }} {{ d.absent is defined }} {{ d | length }}"),
              "one False " + std::to_string(size + (size > 3 ? 1 : 2)));
  }
}

}  // namespace
}  // namespace sluice
