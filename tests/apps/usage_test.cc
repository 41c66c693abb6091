// What the program says about itself, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "apps/program.h"
#include "base/cpu.h"
#include "base/file.h"

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

/// The program's own list: the lines below "Subcommands:".
std::vector<std::string> commands_of(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help.substr(help.find("Subcommands:\n") + 13));
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 2 && line.starts_with("  ") && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

TEST(Usage, HelpListsEveryCommandAndEveryCommandHasHelp) {
  const Outcome all = run_program({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.out, HasSubstr("Exit codes: 0 done, 1 error, 2 wrong usage, 130 stopped by Ctrl-C"));
  const std::vector<std::string> commands = commands_of(all.out);
  EXPECT_THAT(commands, ::testing::IsSupersetOf({"run", "chat", "trace", "bench", "plan"}));
  const std::string readme = read_text_file(SLUICE_SOURCE_DIR "/README.md");
  for (const std::string& command : commands) {
    SCOPED_TRACE(command);
    const Outcome outcome = run_program({command, "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, HasSubstr("Usage: sluice " + command));
    EXPECT_THAT(readme, HasSubstr("\n| `" + command + "` |"));
  }
}

TEST(Usage, UnknownCommandsAreNamedWithTheKnownOnes) {
  const Outcome outcome = run_program({"juggle", "--model", "x"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("unknown command \"juggle\""), HasSubstr("run, chat"), HasSubstr("plan")));
  const Outcome inner = run_program({"trace", "juggle"});
  EXPECT_EQ(inner.exit_code, 2);
  EXPECT_THAT(inner.err, AllOf(HasSubstr("\"juggle\""), HasSubstr("record, replay")));
}

TEST(Usage, HelpNamesTheAdvancedOptionsWhereThereAreAny) {
  EXPECT_THAT(run_program({"run", "--help"}).out, HasSubstr("\n--help-advanced shows "));
  EXPECT_THAT(run_program({"inspect", "--help"}).out, ::testing::Not(HasSubstr("--help-advanced")));
  EXPECT_THAT(run_program({"run", "--help-advanced"}).out, ::testing::Not(HasSubstr("--help-advanced")));
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
