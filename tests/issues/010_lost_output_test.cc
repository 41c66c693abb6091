// Output that did not fit the disk was lost with exit code 0, where more than one buffer of it was written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/program.h"

namespace sluice::testing {
namespace {

TEST(LostOutput, IsAnErrorOfEveryCommand) {
  const std::string model = golden_folder("qwen3_moe");
  std::string texts = "[\"a\"";
  for (int i = 0; i < 5000; ++i) texts += ", \"a\"";
  texts += "]";
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"inspect", "--model", model, "--tensors", "--json"}, ""},
      {{"inspect", "--model", model, "--tensors"}, ""},
      {{"tokenize", "--tokenizer", demo_model()}, texts},
      {{"tokenize", "--tokenizer", demo_model()}, "[\"a\"]"},
      {{"eval", "--model", model, "--ids", "-"}, "[1, 2]"},
      {{"run", "--help"}, ""},
      {{"--help"}, ""},
  };
  for (const auto& [arguments, input] : cases) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const Outcome outcome = run_program_into("/dev/full", arguments, input);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("cannot write to standard output"));
    EXPECT_EQ(run_program_into("/dev/null", arguments, input).exit_code, 0);
  }
}

}  // namespace
}  // namespace sluice::testing
