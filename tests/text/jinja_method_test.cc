// Methods of strings, dicts and lists, and formatting of text.
#include <gtest/gtest.h>

#include "text/render_template.h"

namespace sluice {
namespace {

using testing::expect_expressions;
using testing::expect_failures;

constexpr const char* kVariables = R"({"d": {"a": 1, "b": 2}, "l": [3, 1, 3], "s": "Hello World"})";

TEST(JinjaMethods, SplitText) {
  expect_expressions({{"s.split()", "['Hello', 'World']"},
                      {"' a  b '.split(none, 1)", "['a', 'b ']"},
                      {"' a  b '.rsplit(none, 1)", "[' a', 'b']"},
                      {"s.split('o')", "['Hell', ' W', 'rld']"},
                      {"s.split('o', 1)", "['Hell', ' World']"},
                      {"s.rsplit('o', 1)", "['Hello W', 'rld']"},
                      {"'aaa'.rsplit('aa')", "['a', '']"},
                      {"'a-b-c'.rsplit('-', maxsplit=1)[0]", "a-b"},
                      {"'a,b,c'.partition(',')", "('a', ',', 'b,c')"},
                      {"'a,b,c'.rpartition(',')", "('a,b', ',', 'c')"},
                      {"'abc'.rpartition('x')", "('', '', 'abc')"},
                      {R"('a\r\nb\x0bc'.splitlines())", "['a', 'b', 'c']"},
                      {R"('a\nb\n'.splitlines(true))", R"(['a\n', 'b\n'])"},
                      {"'a</think>b'.split('</think>')[-1].lstrip('\\n')", "b"}},
                     kVariables);
  expect_failures({{"s.split('')", "ValueError: empty separator"}}, kVariables);
}

TEST(JinjaMethods, SearchAndReplaceText) {
  expect_expressions({{"s.find('o')", "4"},
                      {"s.rfind('o')", "7"},
                      {"s.find('zz')", "-1"},
                      {"'é✓x'.find('x')", "2"},
                      {"'abcabc'.find('c', -2)", "5"},
                      {"'abcabc'.rfind('a', 0, 3)", "0"},
                      {"s.index('W')", "6"},
                      {"s.count('l')", "3"},
                      {"'abcabc'.count('a', 1)", "1"},
                      {"'ab'.count('')", "3"},
                      {"s.startswith(('x', 'He'))", "True"},
                      {"'abc'.startswith('b', 1)", "True"},
                      {"'abc'.endswith('b', 0, 2)", "True"},
                      {"s.replace('l', 'L', 1)", "HeLlo World"},
                      {"'abc'.replace('', '-')", "-a-b-c-"},
                      {"'abc'.replace('', '-', 2)", "-a-bc"},
                      {"'foobar'.removeprefix('foo')", "bar"},
                      {"'foobar'.removesuffix('bar')", "foo"}},
                     kVariables);
  expect_failures({{"s.index('zz')", "ValueError: substring not found"}}, kVariables);
}

TEST(JinjaMethods, StripAndPadText) {
  expect_expressions({{"'  x '.strip()", "x"},
                      {"'xxaxx'.strip('x')", "a"},
                      {"'xya'.lstrip('yx')", "a"},
                      {"'axx'.rstrip('x')", "a"},
                      {R"('\u00a0x\u2003'.strip())", "x"},
                      {"'ab'.center(7, '*')", "***ab**"},
                      {"'ab'.ljust(4) ~ '|'", "ab  |"},
                      {"'ab'.rjust(4)", "  ab"},
                      {"'-5'.zfill(4)", "-005"}});
}

TEST(JinjaMethods, ChangeAndTestCase) {
  expect_expressions({{"s.upper()", "HELLO WORLD"},
                      {"'ÀÉ'.lower()", "àé"},
                      {"'ß'.upper()", "SS"},
                      {"'hELLO wORLD'.capitalize()", "Hello world"},
                      {"\"they're\".title()", "They'Re"},
                      {"'abc'.isalpha()", "True"},
                      {"'a1'.isalnum()", "True"},
                      {"'١'.isdigit()", "True"},
                      {"''.isdigit()", "False"},
                      {"' '.isspace()", "True"},
                      {"'aB'.islower()", "False"},
                      {"'A1'.isupper()", "True"}},
                     kVariables);
}

TEST(JinjaMethods, JoinOnlyText) {
  expect_expressions({{"','.join(['a', 'b'])", "a,b"}, {"''.join([])", ""}});
  expect_failures({{"','.join(['a', 1])", "TypeError: sequence item 1: expected str instance, int found"}});
}

TEST(JinjaMethods, FormatTextTheOldWay) {
  expect_expressions({{"'%s is %d' % ('x', 3)", "x is 3"},
                      {"'%5.2f|' % 3.14159", " 3.14|"},
                      {"'%-5s|' % 'a'", "a    |"},
                      {"'%05d' % 42", "00042"},
                      {"'%+d' % 42", "+42"},
                      {"'%x' % 255", "ff"},
                      {"'%(a)s' % d", "1"},
                      {"'%r' % 'x'", "'x'"},
                      {"'%s' % none", "None"},
                      {"'100%%' % ()", "100%"},
                      {"'%s' % [1]", "[1]"}},
                     kVariables);
  expect_failures({{"'%s' % (1, 2)", "TypeError: not all arguments converted during string formatting"},
                   {"'%s %s' % 1", "TypeError: not enough arguments for format string"}});
}

TEST(JinjaMethods, FormatTextWithBraces) {
  expect_expressions({{"'{} {}'.format(1, 'a')", "1 a"},
                      {"'{0}{1}{0}'.format('a', 'b')", "aba"},
                      {"'{x}'.format(x=3)", "3"},
                      {"'{:>5}|'.format('a')", "    a|"},
                      {"'{:^7}|'.format('ab')", "  ab   |"},
                      {"'{:05.1f}'.format(3.14159)", "003.1"},
                      {"'{:,}'.format(1234567)", "1,234,567"},
                      {"'{:%}'.format(0.5)", "50.000000%"},
                      {"'{!r}'.format('a')", "'a'"},
                      {"'{{}}'.format()", "{}"},
                      {"'{a[b]}'.format(a={'b': 1})", "1"},
                      {"'{:{w}}|'.format('a', w=3)", "a  |"}});
  expect_failures({{"'}'.format()", "ValueError: Single '}' encountered in format string"},
                   {"'{x}'.format()", "KeyError: 'x'"}});
}

TEST(JinjaMethods, ReadDictsAndLists) {
  expect_expressions({{"d.get('a')", "1"},
                      {"d.get('zz')", "None"},
                      {"d.get('zz', 7)", "7"},
                      {"d.keys() | list", "['a', 'b']"},
                      {"d.values() | list", "[1, 2]"},
                      {"d.items() | list", "[('a', 1), ('b', 2)]"},
                      {"l.index(1)", "1"},
                      {"l.count(3)", "2"},
                      {"l.copy()", "[3, 1, 3]"},
                      {"2.0.is_integer()", "True"}},
                     kVariables);
}

TEST(JinjaMethods, NameTheMethodThatIsNotSupported) {
  const Error error = testing::error_of("{{ 'x'.encode() }}");
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(error.what(), "chat template, line 1: the method str.encode is not supported");
}

}  // namespace
}  // namespace sluice
