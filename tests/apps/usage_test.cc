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
  EXPECT_THAT(all.out,
              HasSubstr("Exit codes: 0 done, 1 error, 2 wrong usage (the command line itself is wrong"));
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
      {{}, "a command is missing; the commands are: run, chat"},
      {{"trace"}, "trace needs a command; known here: record, replay"},
      {{"run", "--prompt", "a"}, "--model"},
      {{"run", "--model", folder, "--juggle"}, "--juggle"},
      {{"run", "--model", folder, "--max-tokens", "0"}, "--max-tokens"},
      {{"run", "--model", folder, "--max-tokens", "many"}, "--max-tokens"},
      {{"run", "--model", folder, "--compute", "f8"}, "--compute"},
      {{"run", "--model", folder, "--prompt", "a", "--system", "b"}, "--chat"},
      {{"eval", "--model", folder}, "--ids"},
  };
  for (const auto& [arguments, part] : cases) {
    expect_wrong_usage(arguments, {part});
  }
}

TEST(Usage, WhatIsWrongIsSaidInOurWords) {
  const std::string model = golden_folder("qwen3_moe");
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"run", "--bogus"}, "unknown option --bogus; `sluice run --help`"},
      {{"trace", "record", "--bogus=1"}, "unknown option --bogus; `sluice trace record --help`"},
      {{"run", "--model"}, "--model needs a value"},
      {{"run", "--model="}, "--model needs a value"},
      {{"run", "--model", "--prompt", "a"}, "--model needs a value"},
      {{"run", "--model", "a", "--model", "b"}, "--model is given twice"},
      {{"run", "--prompt", "a"}, "--model is required"},
      {{"run", "--model", model, "x", "--report"}, "unexpected argument \"x\""},
      {{"run", "--model", model, "--json=yes"}, "--json takes no value"},
      {{"run", "--model", model, "--prompt", "a", "--prompt-file", "b"}, "exclude each other"},
      {{"run", "--model", model, "--threads", "5000"}, "--threads: 5000 is outside 0 ... 4096"},
      {{"bench", "cpu", "--model", model, "--rounds", "0"}, "--rounds: 0 is too little: at least 1"},
  };
  for (const auto& [arguments, part] : cases) expect_wrong_usage(arguments, {part});
}

TEST(Usage, EmptyAndMalformedValuesAreWrongUsageWhateverTheModelIs) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> cases = {
      {"--temperature", {"", "-1", "nan", "1x"}},
      {"--top-p", {"", "2"}},
      {"--min-p", {"", "-0.1"}},
      {"--repetition-penalty", {"", "0"}},
      {"--presence-penalty", {"", "inf"}},
      {"--frequency-penalty", {""}},
      {"--top-k", {"", "-1"}},
      {"--seed", {""}},
      {"--logit-bias", {"", "0"}},
      {"--prompt-file", {""}},
      {"--expert-slots", {"", "abc", "1.5", "101%", "0"}},
      {"--lookahead-budget", {"", "0"}},
      {"--prefill-group", {"", "-1"}},
      {"--numa", {"", "x"}},
      {"--host-memory-limit", {"", "-1", "0"}},
      {"--report", {""}},
      {"--residency", {""}},
      {"--warm-from", {""}},
  };
  for (const auto& [option, values] : cases) {
    for (const char* value : values) {
      expect_wrong_usage({"run", "--model", "absent", option, value}, {option});
    }
  }
  expect_wrong_usage({"convert", "--model", "absent", "--out", "b", "--format", "foo"},
                     {"--format", "nvfp4"});
  expect_wrong_usage({"plan", "--model", "absent", "--compute-share", "0"}, {"--compute-share"});
  expect_wrong_usage({"plan", "--model", "absent", "--simulate", "foo"}, {"foo"});
  expect_wrong_usage({"bench", "slots", "--slots", "99999999"}, {"--slots"});
  expect_wrong_usage({"eval", "--model", "absent", "--ids", "a", "--logits", "-"}, {"--logits -"});
  expect_refusal({"run", "--model", golden_folder("qwen3_moe"), "--prompt", "", "--chat", "--system", ""},
                 {"qwen3_moe"});
}

TEST(Usage, OptionsThatHaveNoEffectSayWhatTheyNeed) {
  const auto run = [](const Arguments& more, const std::string& part) {
    Arguments all = {"run", "--model", "absent", "--prompt", "a"};
    all.insert(all.end(), more.begin(), more.end());
    expect_wrong_usage(all, {more[more.size() - 2] + ": ", part});
  };
  const std::vector<std::pair<std::string, std::string>> for_slots = {
      {"--audit", "3"},
      {"--cpu-experts", "always"},
      {"--prefill-mode", "stream"},
      {"--prefill-ring", "8"},
      {"--prefill-group", "64"},
      {"--expert-policy", "scored"},
      {"--lookahead", "off"},
      {"--lookahead-stream", "side"},
      {"--lookahead-budget", "3"},
      {"--prefill-hit", "off"},
      {"--prefill-overlap", "off"},
      {"--prefill-invalidate", "layer"},
      {"--prefill-copy-priority", "default"},
      {"--report", "r"},
      {"--residency", "q"},
      {"--warm-from", "t"},
  };
  for (const auto& [option, value] : for_slots) run({option, value}, "experts have no slots");
  run({"--expert-slots", "8", "--lookahead", "off", "--lookahead-budget", "3"}, "--lookahead on");
  run({"--expert-slots", "8", "--lookahead", "measure", "--lookahead-budget", "3"}, "--lookahead on");
  run({"--expert-slots", "8", "--lookahead", "off", "--lookahead-stream", "side"}, "--lookahead on");
  run({"--expert-slots", "8", "--prefill-mode", "stream", "--prefill-group", "64"}, "layer-major");
  run({"--expert-slots", "8", "--prefill-overlap", "off", "--prefill-copy-priority", "default"},
      "--prefill-overlap on");
  for (const char* option : {"--warm-from", "--residency", "--audit"}) {
    expect_wrong_usage({"plan", "--model", "absent", "--expert-slots", "25%", option, "3"},
                       {std::string("unknown option ") + option});
  }
  expect_wrong_usage({"plan", "--model", "absent", "--expert-slots", "25%", "--lookahead", "off"},
                     {"--lookahead: has no effect without --simulate"});
  expect_wrong_usage({"bench", "experts", "--model", "absent", "--expert-slots", "8", "--lookahead", "off"},
                     {"unknown option --lookahead"});
  expect_wrong_usage({"trace", "replay", "absent", "--slots", "8", "--policies", "lru", "--half-life", "7"},
                     {"--half-life", "--policies lfu"});
}

}  // namespace
}  // namespace sluice::testing
