// Rendering of short templates in tests.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/chat_template_inputs.h"

namespace sluice::testing {

/// The text of `source` with the variables of the JSON object `variables`.
inline std::string render(const std::string& source, const std::string& variables = "{}") {
  ChatTemplateInputs inputs;
  inputs.variables = nlohmann::ordered_json::parse(variables);
  return ChatTemplate::parse(source).render(inputs);
}

/// The Error of a template that can't be parsed or rendered; fails the test if it can.
inline Error error_of(const std::string& source, const std::string& variables = "{}") {
  try {
    ADD_FAILURE() << source << " renders as: " << render(source, variables);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInvalidArgument, "no error");
}

struct Rendering {
  std::string source;
  std::string expected;
};

/// Each source, an expression without braces, against the text that Python's Jinja2 gives for it.
inline void expect_expressions(const std::vector<Rendering>& cases, const std::string& variables = "{}") {
  for (const Rendering& c : cases) {
    SCOPED_TRACE(c.source);
    EXPECT_EQ(render("{{ " + c.source + " }}", variables), c.expected);
  }
}

/// Each source, a whole template, against its text.
inline void expect_templates(const std::vector<Rendering>& cases, const std::string& variables = "{}") {
  for (const Rendering& c : cases) {
    SCOPED_TRACE(c.source);
    EXPECT_EQ(render(c.source, variables), c.expected);
  }
}

/// Each source, an expression, must stop with a run-time error that ends with the given words.
inline void expect_failures(const std::vector<Rendering>& cases, const std::string& variables = "{}") {
  for (const Rendering& c : cases) {
    SCOPED_TRACE(c.source);
    const Error error = error_of("{{ " + c.source + " }}", variables);
    EXPECT_EQ(name_of(error.code()), name_of(ErrorCode::kBadFile));
    EXPECT_TRUE(std::string(error.what()).ends_with(": " + c.expected)) << error.what();
  }
}

}  // namespace sluice::testing
