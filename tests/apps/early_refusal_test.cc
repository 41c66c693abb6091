// What is wrong with the flags is said before the model is read, by the flag's name, and numbers are taken as
// they are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/broken_model.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A model whose weights cannot be read: a flag that is refused was refused before.
class EarlyRefusal : public BrokenModel {
 protected:
  void SetUp() override {
    copy("qwen3_moe");
    write_tokenizer();
    write_file_atomically(model_ / "chat_template.jinja", "{{ messages[0].content }}");
    // The header is whole, a tensor that is read late is missing.
    edit_tensors([](auto& tensors) {
      std::erase_if(tensors, [](const auto& t) { return t.name == "model.embed_tokens.weight"; });
    });
  }
  Arguments with(const std::string& command, const Arguments& more) const {
    Arguments all = {command, "--model", model_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(EarlyRefusal, WithoutAWrongFlagTheWeightsAreWhatIsWrong) {
  expect_refusal(with("run", {"--prompt", "a"}), {"model.embed_tokens.weight"});
}

TEST_F(EarlyRefusal, SamplingFlagsAreNamedAsTheyAreWritten) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--temperature", "1e300"}, "--temperature: 1e+300 is outside 0 ... 1e6"},
      {{"--top-k", "-1"}, "--top-k: -1 is outside 0 (off) and up"},
      {{"--min-p", "-1e-7"}, "--min-p: -1e-07 is outside 0 (off) ... 1"},
      {{"--repetition-penalty", "0"}, "--repetition-penalty: 0 is outside 1e-6 ... 1e6 (1 is off)"},
      {{"--logit-bias", "300=inf"}, "--logit-bias of token 300: inf is outside -3.4e38 ... 3.4e38"},
      {{"--logit-bias", "300=1e39"}, "1e+39 is outside"},
  };
  for (const auto& [flags, part] : cases) {
    SCOPED_TRACE(part);
    expect_wrong_usage(with("run", flags), {part});
    expect_wrong_usage(with("chat", flags), {part});
  }
}

TEST_F(EarlyRefusal, SlotsAndReportsAreCheckedFirst) {
  expect_refusal(with("run", {"--prompt", "a", "--expert-slots", "25"}), {"only 24 experts"});
  expect_wrong_usage(with("eval", {"--ids", ids_, "--expert-slots", "many"}), {"--expert-slots many:"});
  expect_wrong_usage(with("run", {"--prompt", "a", "--report", folder_ / "report"}),
                     {"--report", "--expert-slots"});
}

TEST_F(EarlyRefusal, OutputsThatCannotBeWrittenAreNamedAsTheUserWroteThem) {
  const std::string absent = folder_ / "absent/out";
  for (const Arguments& arguments :
       {with("eval", {"--ids", ids_, "--logits", absent}),
        with("run", {"--prompt", "a", "--expert-slots", "8", "--residency", absent}),
        with("run", {"--prompt", "a", "--expert-slots", "8", "--report", absent})}) {
    expect_refusal(arguments, {absent + ": cannot create: No such file or directory"});
  }
  expect_refusal({"trace", "record", "--model", model_, "--prompt", "a", "--out", absent},
                 {absent + ": cannot create"});
  // Nobody creates files there, root included.
  expect_refusal(with("run", {"--prompt", "a", "--expert-slots", "8", "--residency", "/proc/residency"}),
                 {"/proc/residency: cannot create"});
}

TEST_F(EarlyRefusal, InputThatIsNoJsonIsSaidInOurWords) {
  expect_refusal(with("render", {"--messages", "-"}), {"standard input: is no JSON: offset "}, "[");
  expect_wrong_usage(with("render", {"--messages", "-", "--set", "a={"}), {"--set a: is no JSON: offset"},
                     "[]");
}

TEST_F(EarlyRefusal, WholeNumbersAreTakenAsTheyAreWrittenOrRefused) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--seed", "-1"}, "--seed: \"-1\" is not a whole number from 0 up"},
      {{"--seed", "18446744073709551616"}, "18446744073709551616 is too large: at most 18446744073709551615"},
      {{"--seed", "100000000000000000000000"}, "is too large"},
      {{"--top-k", "12345678901234567890"},
       "--top-k: 12345678901234567890 is too large: at most 9223372036854775807"},
      {{"--max-tokens", "12345678901234567890"}, "--max-tokens: 12345678901234567890 is too large"},
      {{"--max-tokens", "-12345678901234567890"}, "-12345678901234567890 is too little: at least 1"},
      {{"--chunk", "12345678901234567890"}, "12345678901234567890 is outside 1 ... 8192"},
      {{"--max-tokens", "1.5"}, "\"1.5\" is not a whole number"},
      {{"--threads", "0x2"}, "\"0x2\" is not a whole number"},
  };
  for (const auto& [flags, part] : cases) {
    SCOPED_TRACE(part);
    const Outcome outcome = run_program(with("run", flags));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
}

TEST_F(EarlyRefusal, OptionsThatWouldDoNothingAreWrongUsage) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {with("run", {"--prompt", "a", "--logprobs", "2"}), "--json"},
      {with("plan", {"--timeline", folder_ / "timeline"}), "--simulate"},
      {with("plan", {"--prompt-tokens", "5"}), "--simulate"},
      {with("plan", {"--expert-slots", "8", "--report", folder_ / "report"}), "--report"},
      {{"bench", "experts", "--model", model_, "--expert-slots", "8", "--report", folder_ / "report"},
       "--report"},
  };
  for (const auto& [arguments, part] : cases) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }
}

/// An unbroken copy.
class CutToWhatIsThere : public BrokenModel {};

TEST_F(CutToWhatIsThere, MoreThreadsThanCoresAndMoreContextThanPositionsAreSaid) {
  copy("qwen3_moe");
  Arguments arguments = eval();
  const std::string expected = run_program(arguments).out;
  arguments.insert(arguments.end(), {"--threads", "4096", "--context", "99999999"});
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, expected);
  EXPECT_THAT(outcome.err, HasSubstr("--threads 4096: this process may use "));
  EXPECT_THAT(outcome.err,
              HasSubstr("--context 99999999: the model was made for 512 tokens; 512 are used\n"));
  const Outcome plan = run_program({"plan", "--model", model_, "--context", "99999999"});
  EXPECT_THAT(plan.out, HasSubstr("512 tokens in bf16"));
}

TEST_F(CutToWhatIsThere, ALookaheadBudgetBeyondTheExpertsIsAllOfThem) {
  copy("qwen3_moe");
  const auto predicted = [&](const std::string& budget) {
    Arguments arguments = eval();
    arguments.insert(arguments.end(),
                     {"--expert-slots", "12", "--decode-from", "0", "--lookahead-budget", budget});
    return run_program(arguments).err;
  };
  const std::string all = predicted("8");
  EXPECT_EQ(predicted("4294967297"), all);
  EXPECT_NE(predicted("1"), all);
}

}  // namespace
}  // namespace sluice::testing
