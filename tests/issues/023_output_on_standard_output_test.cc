// `eval --logits /dev/stdout` wrote its lines of text into the binary file.
#include "apps/broken_model.h"

#include "checkpoint/safetensors.h"

namespace sluice::testing {
namespace {

using OutputOnStandardOutput = BrokenModel;

TEST_F(OutputOnStandardOutput, IsTheOutputAlone) {
  copy("qwen3_moe");
  write_tokenizer();
  const auto into = [&](Arguments arguments, const std::string& option) {
    const std::filesystem::path file = folder_ / "out";
    arguments.insert(arguments.end(), {option, "/dev/stdout"});
    const Outcome outcome = run_program_into(file, arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return std::pair(read_text_file(file), outcome.err);
  };
  const auto [logits, lines] = into(eval(), "--logits");
  write_file_atomically(folder_ / "logits", logits);
  EXPECT_EQ(SafetensorsFile::open(folder_ / "logits").tensors().size(), 1u + 3u) << "logits and three layers";
  EXPECT_THAT(lines, ::testing::HasSubstr("sequence 0: 3 tokens, mean negative log-likelihood"));

  const Arguments run = {"run", "--model",      model_, "--prompt",       "a", "--temperature",
                         "0",   "--max-tokens", "3",    "--expert-slots", "12"};
  const auto [report, answer] = into(run, "--report");
  EXPECT_TRUE(nlohmann::json::parse(report).contains("layers"));
  EXPECT_THAT(answer, ::testing::HasSubstr("experts: 12 slots"));
  const Arguments plan = {"plan", "--model",  model_, "--simulate", "h200", "--prompt-tokens",
                          "4",    "--tokens", "1"};
  const auto [timeline, table] = into(plan, "--timeline");
  EXPECT_TRUE(nlohmann::json::parse(timeline).contains("traceEvents"));
  EXPECT_THAT(table, ::testing::HasSubstr("dense weights"));
  EXPECT_EQ(run_program_into("/dev/null", eval()).err, "") << "nothing moves where nothing is mixed";
}

}  // namespace
}  // namespace sluice::testing
