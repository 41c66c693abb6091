// A model's vocabulary is often padded, and has ids that no token has: naming one of them ended `run` after
// all the work, without its output.
#include "apps/broken_model.h"

namespace sluice::testing {
namespace {

using IdsWithoutTokens = BrokenModel;

TEST_F(IdsWithoutTokens, DoNotEndARun) {
  copy("qwen3_moe");  // 320 ids; the tokenizer has 0 to 255 and 300
  write_tokenizer();
  const Outcome outcome =
      run_program({"run", "--model", model_, "--prompt", "a", "--temperature", "0", "--max-tokens", "3",
                   "--json", "--logprobs", "320", "--ignore-end", "--logit-bias", "280=1000"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("ids"), nlohmann::json({280, 280, 280}));
  EXPECT_EQ(json.at("text"), "");
  const auto& token = json.at("logprobs")[0];
  EXPECT_EQ(token.at("token"), "");
  EXPECT_EQ(token.at("top_logprobs").size(), 301u) << "nothing beyond the tokenizer's highest id";
}

}  // namespace
}  // namespace sluice::testing
