// `eval` found out at the end of a context that its continuation had no room, said nothing of a sequence of
// one id, and let every layer wait for the host though nobody had asked for routes.
#include "apps/broken_model.h"

namespace sluice::testing {
namespace {

class Eval : public BrokenModel {
 protected:
  void SetUp() override { copy("qwen3_moe"); }
  Arguments with(const Arguments& more) const {
    Arguments all = eval();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(Eval, RefusesAContinuationWithoutRoomBeforeAnythingRuns) {
  write_ids("[[1, 2, 3], [4]]");
  expect_refusal(with({"--greedy", "511"}),
                 {"sequence 0: --greedy 511: 3 tokens in a context of 512 leave room for only 510"});
  expect_refusal(with({"--greedy", "99999999999"}), {"sequence 0: --greedy 99999999999"});
  EXPECT_EQ(run_program(with({"--greedy", "6", "--context", "8"})).exit_code, 0);
  expect_refusal(with({"--greedy", "7", "--context", "8"}), {"leave room for only 6"});
  write_ids("[[1], [1, 2, 3, 4, 5, 6, 7, 8, 9]]");
  expect_refusal(with({"--context", "8"}), {"sequence 1: prompt is too long"});
}

TEST_F(Eval, SaysThatOneIdHasNoLikelihood) {
  write_ids("[[7], [1, 2]]");
  const Outcome outcome = run_program(eval());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("sequence 0: 1 token, no likelihood"));
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("sequence 1: 2 tokens, mean negative"));
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("all: 1 prediction, mean"));
}

TEST_F(Eval, WaitsForRoutesOnlyWhereTheyAreWritten) {
  const std::string waits = "observed routes";
  EXPECT_THAT(run_program(with({"--expert-slots", "12"})).err, ::testing::Not(::testing::HasSubstr(waits)));
  EXPECT_THAT(run_program(with({"--expert-slots", "12", "--logits", "/dev/null"})).err,
              ::testing::HasSubstr(waits));
}

TEST_F(Eval, SumsManyPassesUpAndCallsShortOnesByTheirName) {
  std::string ids = "[1";
  for (int i = 1; i < 120; ++i) ids += ", " + std::to_string(1 + i * 7 % 300);
  write_ids(ids + "]");
  const std::string many =
      run_program(with({"--expert-slots", "12", "--chunk", "10", "--prefill-mode", "stream"})).err;
  EXPECT_THAT(many, ::testing::HasSubstr("prompt passes, stream: 12 with 120 tokens, streamed "));
  EXPECT_THAT(many, ::testing::HasSubstr("the last 3 of them:\nprompt pass: 10 tokens in 1 chunk, stream"));
  EXPECT_LT(std::count(many.begin(), many.end(), '\n'), 12) << many;
  EXPECT_THAT(many, ::testing::HasSubstr("; decode: 0 routed"));
  write_ids("[1, 2, 3]");
  const std::string prompt = run_program(with({"--expert-slots", "12", "--prefill-mode", "touched"})).err;
  EXPECT_THAT(prompt, ::testing::HasSubstr("; 1 short prompt pass: "));
  EXPECT_THAT(prompt, ::testing::HasSubstr("prompt pass: 3 tokens in 1 chunk, ensure"));
  EXPECT_THAT(prompt, ::testing::Not(::testing::HasSubstr("prompt passes")));
  const std::string both =
      run_program(with({"--expert-slots", "12", "--prefill-mode", "touched", "--decode-from", "2"})).err;
  EXPECT_THAT(both, ::testing::HasSubstr("; decode and 1 short prompt pass: "));
}

}  // namespace
}  // namespace sluice::testing
