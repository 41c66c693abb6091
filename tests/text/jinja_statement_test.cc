// Statements: loops, conditions, assignments, macros, blocks, and the errors of the parser.
#include <gtest/gtest.h>

#include "text/render_template.h"

namespace sluice {
namespace {

using testing::error_of;
using testing::expect_templates;
using testing::render;

constexpr const char* kVariables = R"({"d": {"a": 1, "b": 2}, "l": [3, 1, 2], "s": "Hello", "e": [],
  "tree": [{"n": "a", "c": [{"n": "b", "c": []}]}, {"n": "c", "c": []}]})";

TEST(JinjaStatements, LoopOverListsDictsAndText) {
  expect_templates({{"{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "3, 1, 2"},
                    {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "a=1;b=2;"},
                    {"{% for k in d %}{{ k }}{% endfor %}", "ab"},
                    {"{% for c in 'aé' %}{{ c }}-{% endfor %}", "a-é-"},
                    {"{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"},
                    {"{% for x in e %}{{ x }}{% else %}empty{% endfor %}", "empty"},
                    {"{% for x in missing %}a{% else %}b{% endfor %}", "b"},
                    {"{% for x in range(5, 0, -2) %}{{ x }}{% endfor %}{{ x }}", "531"}},
                   kVariables);
}

TEST(JinjaStatements, TellALoopWhereItIs) {
  expect_templates(
      {{"{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor "
        "%}",
        "1032;2121;3210;"},
       {"{% for x in l %}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
        "TrueFalse3;FalseFalse3;FalseTrue3;"},
       {"{% for x in l %}{{ loop.previtem }}-{{ loop.nextitem | default('z') }};{% endfor %}", "-1;3-2;1-z;"},
       {"{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "aba"},
       {"{% for x in [1, 1, 2] %}{{ loop.changed(x) }},{% endfor %}", "True,False,True,"},
       {"{% for x in l %}{% set outer = loop %}{% for y in e + [1] %}{{ outer.index }}{{ loop.depth }}{% "
        "endfor %}"
        "{% endfor %}",
        "112131"}},
      kVariables);
}

TEST(JinjaStatements, FilterBreakAndContinueLoops) {
  expect_templates({{"{% for x in l if x > 1 %}{{ x }}{{ loop.length }},{% endfor %}", "32,22,"},
                    {"{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}", "none"},
                    {"{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "3"},
                    {"{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "32"},
                    {"{% for x in l %}{% break %}{% else %}e{% endfor %}", "e"}},
                   kVariables);
}

TEST(JinjaStatements, RecurseThroughTrees) {
  const char* source = "{% for x in tree recursive %}{{ x.n }}{{ loop.depth }}[{{ loop(x.c) }}]{% endfor %}";
  EXPECT_EQ(render(source, kVariables), "a1[b2[]]c1[]");
}

TEST(JinjaStatements, KeepAssignmentsInsideTheirLoop) {
  expect_templates(
      {{"{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}", "13 11 12 1"},
       {"{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "2"},
       {"{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "6"},
       {"{% set ns = namespace({'x': 1}, y=2) %}{{ ns.x }}{{ ns['y'] }}{{ ns.z is defined }}", "12False"},
       {"{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"},
       {"{% set (a, b) = [1, 2] %}{{ a }}{{ b }}", "12"},
       {"{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "12"}},
      kVariables);
}

TEST(JinjaStatements, AssignAndFilterBlocks) {
  expect_templates({{"{% set x %}hello {{ s }}{% endset %}[{{ x }}]", "[hello Hello]"},
                    {"{% set x | replace('l', 'L') | trim %} hello {% endset %}[{{ x }}]", "[heLLo]"},
                    {"{% set x %}{% set y = 1 %}a{% endset %}{{ y }}{{ x }}", "a"},
                    {"{% filter upper | replace('A', 'x') %}abc{{ s }}{% endfilter %}", "xBCHELLO"}},
                   kVariables);
}

TEST(JinjaStatements, CallMacros) {
  expect_templates(
      {{"{% macro f(a, b=2) %}{{ a }}{{ b }};{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=5, a=4) }}{{ f() }}",
        "12;13;45;2;"},
       {"{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}", "11"},
       {"{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=4) }}", "(2,){'x': 4}"},
       {"{% set q = 1 %}{% macro f() %}{{ q }}{% endmacro %}{% set q = 2 %}{{ f() }}", "2"},
       {"{% macro f() %}{% set s = 'q' %}{{ s }}{% endmacro %}{{ f() }}{{ s }}", "qHello"},
       {"{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "3210"},
       {"{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}G{% endmacro %}{{ f() }}", "G"},
       {"{% macro f() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b) f() %}{{ a }}{{ b }}{{ s }}{% "
        "endcall %}",
        "[12Hello]"},
       {"{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}", "False"},
       {"{% macro f() %}x{% endmacro %}{{ f.name }}{{ f }}", "f<Macro 'f'>"}},
      kVariables);
}

TEST(JinjaStatements, RefuseArgumentsThatAMacroDoesNotTake) {
  const char* macro = "{% macro f(a) %}{{ a }}{% endmacro %}";
  EXPECT_STREQ(error_of(std::string(macro) + "{{ f(1, 2) }}").what(),
               "chat template, line 1: TypeError: macro 'f' takes not more than 1 argument(s)");
  EXPECT_STREQ(error_of(std::string(macro) + "{{ f(z=2) }}").what(),
               "chat template, line 1: TypeError: macro 'f' takes no keyword argument 'z'");
}

TEST(JinjaStatements, OfferGlobalFunctions) {
  expect_templates(
      {{"{{ dict(a=1) }}{{ dict([('b', 2)], c=3) }}", "{'a': 1}{'b': 2, 'c': 3}"},
       {"{{ dict(**d) }}{{ range(*[1, 3]) | list }}", "{'a': 1, 'b': 2}[1, 2]"},
       {"{% set j = joiner('|') %}{% for i in l %}{{ j() }}{{ i }}{% endfor %}", "3|1|2"},
       {"{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}", "abab"}},
      kVariables);
}

TEST(JinjaStatements, RenderGenerationTagsAsTheirBody) {
  EXPECT_EQ(render("a{% generation %}b{{ s }}{% endgeneration %}c", kVariables), "abHelloc");
}

TEST(JinjaStatements, NameTheLineOfARunTimeError) {
  EXPECT_STREQ(error_of("a\n{% if true %}\n  {{ missing.x }}\n{% endif %}").what(),
               "chat template, line 3: UndefinedError: 'missing' is undefined");
  EXPECT_STREQ(error_of("{% macro f() %}\n{{ 1 + 'a' }}\n{% endmacro %}\n\n{{ f() }}").what(),
               "chat template, line 2: TypeError: unsupported operand type(s) for +: 'int' and 'str'");
}

TEST(JinjaStatements, RaiseWithTheTemplatesOwnWords) {
  const Error error = error_of("{{ raise_exception('Roles must alternate: ' ~ 1) }}");
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(), "Roles must alternate: 1");
}

TEST(JinjaStatements, RefuseUnpackingOfTheWrongLength) {
  EXPECT_STREQ(error_of("{% for a, b in [(1, 2, 3)] %}{% endfor %}").what(),
               "chat template, line 1: ValueError: too many values to unpack (expected 2)");
  EXPECT_STREQ(error_of("{% set a, b = [1] %}").what(),
               "chat template, line 1: ValueError: not enough values to unpack (expected 2, got 1)");
}

TEST(JinjaStatements, NameLineAndColumnOfASyntaxError) {
  const std::vector<testing::Rendering> cases = {
      {"a\n {{ 1 + }}", "line 2, column 9: expected an expression, got '}}'"},
      {"{% if x %}", "line 1, column 11: the template ends where 'endif' is missing"},
      {"{% endif %}", "line 1, column 4: unknown tag 'endif'"},
      {"{% do x %}", "line 1, column 4: unknown tag 'do'"},
      {"{{ x", "line 1, column 5: the template ends inside a tag"},
      {"{{ 'abc }}", "line 1, column 4: the string is not closed"},
      {"{{ (1 }}", "line 1, column 7: unexpected '}', expected ')'"},
      {"{{ a b }}", "line 1, column 6: expected '}}', got 'b'"},
      {"{{ @ }}", "line 1, column 4: unexpected character '@'"},
      {"{% break %}", "line 1, column 10: 'break' and 'continue' need a loop around them"},
      {"{% set true = 1 %}", "line 1, column 8: can't assign to 'true'"},
      {"{{ f(a=1, 2) }}", "line 1, column 11: an argument in the wrong order"},
      {"{# a", "line 1, column 1: the comment is not closed: '#}' is missing"},
      {"{{ 08 }}", "line 1, column 5: expected '}}', got a number"},
  };
  for (const auto& [source, expected] : cases) {
    SCOPED_TRACE(source);
    const Error error = error_of(source);
    EXPECT_EQ(name_of(error.code()), name_of(ErrorCode::kBadFile));
    EXPECT_EQ(error.what(), expected);
  }
}

TEST(JinjaStatements, RefuseTagsThatNeedOtherTemplatesByName) {
  for (const char* tag : {"include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'", "block b"}) {
    SCOPED_TRACE(tag);
    const Error error = error_of("\n{% " + std::string(tag) + " %}");
    EXPECT_EQ(name_of(error.code()), name_of(ErrorCode::kUnsupported));
    const std::string name = std::string(tag).substr(0, std::string(tag).find(' '));
    EXPECT_EQ(error.what(), "line 2: the tag '" + name + "' is not supported in chat templates");
  }
}

}  // namespace
}  // namespace sluice
