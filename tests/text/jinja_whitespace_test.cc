// White space around tags under trim_blocks and lstrip_blocks, comments and raw blocks.
#include <gtest/gtest.h>

#include "text/render_template.h"

namespace sluice {
namespace {

using testing::expect_templates;

TEST(JinjaWhitespace, DropsTheLineOfATagThatStandsAlone) {
  expect_templates({{"  {% if true %}\n  a\n  {% endif %}\n  b\n", "  a\n  b"},
                    {"{% for i in [1, 2] %}\n  {{ i }}\n{% endfor %}\nend", "  1\n  2\nend"},
                    {"a \t{% if true %}b{% endif %}\n\nc", "a \tb\nc"},
                    {"x{% if true %}\n{% endif %}y", "xy"},
                    {"a\n  {{ 1 }}\n  b", "a\n  1\n  b"}});
}

TEST(JinjaWhitespace, FollowsSigns) {
  expect_templates({{"  {%+ if true %}\n  a\n  {%+ endif +%}\n  b", "    a\n  \n  b"},
                    {"  {% if true -%}\n  a\n  {%- endif %}\n  b", "a  b"},
                    {"a\n  {{- 1 -}}\n  b", "a1b"},
                    {"{%- for i in [1, 2] -%}\n  {{ i }}\n{%- endfor -%}\nend", "12end"},
                    {"a\xC2\xA0{%- if true %}b{% endif %}", "ab"}});
}

TEST(JinjaWhitespace, TreatsCommentsAsBlocks) {
  expect_templates({{"  {# c #}\nx", "x"},
                    {"  {# c #}  \nx", "  \nx"},
                    {"a {# c #}\nx", "a x"},
                    {"a\n   {# c -#}   \n  x", "a\nx"},
                    {"a  {#- c -#}  b", "ab"},
                    {"{# c +#}\nx", "\nx"},
                    {"{#-#} x", " x"}});
}

TEST(JinjaWhitespace, KeepsRawBlocksAsTheyAre) {
  expect_templates({{"{% raw %}{{ x }}{% if %}{% endraw %}", "{{ x }}{% if %}"},
                    {"{% raw -%}  {{ x }}  {%- endraw %} b", "{{ x }} b"},
                    {"  {% raw %}\n  x\n  {% endraw %}\n y", "\n  x\n y"}});
}

TEST(JinjaWhitespace, NormalizesNewlinesAndDropsTheLastOne) {
  expect_templates({{"a\r\nb\rc\n", "a\nb\nc"}, {"a\n\n", "a\n"}, {"\n", ""}, {"", ""}});
}

TEST(JinjaWhitespace, FindsTheEndOfATagBehindBracketsAndStrings) {
  expect_templates({{"{{ {'a': {'b': 1}} }}", "{'a': {'b': 1}}"},
                    {"{{ {'a': {'b': 1}}['a']['b'] }}", "1"},
                    {"{{ '}}' }}{{ '%}' }}", "}}%}"},
                    {"{% set x = '%}' %}{{ x }}", "%}"},
                    {"{ { }} %} #}", "{ { }} %} #}"}});
}

TEST(JinjaWhitespace, ReplacesInvalidUtf8) {
  expect_templates({{"a\xFF{{ '\xC3' }}", "a\xEF\xBF\xBD\xEF\xBF\xBD"}});
}

}  // namespace
}  // namespace sluice
