// What the program says about itself, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/program.h"
#include "base/cpu.h"

namespace sluice::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(Usage, VersionNamesVersionCommitBackendsAndSimd) {
  const Outcome outcome = run_program({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, MatchesRegex("sluice [0-9]+\\.[0-9]+\\.[0-9]+ \\(commit [0-9a-z, ]+\\)\n"
                                        "backends: [^\n]*host[^\n]*\n"
                                        "SIMD: [^\n]+\n"));
  EXPECT_THAT(outcome.out, HasSubstr("SIMD: " + std::string(name_of(simd_level())) + "\n"));
  EXPECT_EQ(outcome.err, "");
}

TEST(Usage, HelpListsEveryCommandAndEveryCommandHasHelp) {
  const Outcome all = run_program({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.out, HasSubstr("Exit codes: 0 done, 1 error, 2 wrong usage"));
  for (const std::string command : {"run", "chat", "eval", "tokenize", "render", "inspect", "convert"}) {
    SCOPED_TRACE(command);
    EXPECT_THAT(all.out, HasSubstr("\n  " + command + " "));
    const Outcome outcome = run_program({command, "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, HasSubstr("Usage: sluice " + command));
  }
}

TEST(Usage, ChatHelpExplainsCommandsAndKeys) {
  const Outcome outcome = run_program({"chat", "--help"});
  for (const char* command :
       {"/reset", "/save FILE", "/load FILE", "/system TEXT", "/stats", "/help", "/exit"}) {
    EXPECT_THAT(outcome.out, HasSubstr(command));
  }
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("Ctrl-C"), HasSubstr("Ctrl-D"), HasSubstr("\"\"\"")));
}

TEST(Usage, WrongUsageIsExitCodeTwoAndNamesWhatIsWrong) {
  const std::string folder = golden_folder("qwen3_moe");
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{}, "subcommand"},
      {{"juggle"}, "subcommand"},
      {{"run", "--prompt", "a"}, "--model"},
      {{"run", "--model", folder, "--juggle"}, "--juggle"},
      {{"run", "--model", folder, "--max-tokens", "0"}, "--max-tokens"},
      {{"run", "--model", folder, "--max-tokens", "many"}, "--max-tokens"},
      {{"run", "--model", folder, "--compute", "f8"}, "--compute"},
      {{"run", "--model", folder, "--prompt", "a", "--system", "b"}, "--chat"},
      {{"eval", "--model", folder}, "--ids"},
  };
  for (const auto& [arguments, part] : cases) {
    const Outcome outcome = run_program(arguments);
    SCOPED_TRACE(::testing::PrintToString(arguments));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(part));
  }
}

}  // namespace
}  // namespace sluice::testing
