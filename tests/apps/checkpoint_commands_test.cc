// eval, inspect and convert on tiny checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/safetensors.h"
#include "models/golden.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int64_t kVocab = 320, kTopK = 2;

const Tensor& tensor(const SafetensorsFile& file, const std::string& name, DType type,
                     std::vector<int64_t> shape) {
  const Tensor* found = file.find(name);
  if (found == nullptr) throw std::runtime_error("no tensor " + name);
  EXPECT_EQ(found->dtype, type) << name;
  EXPECT_EQ(found->shape, shape) << name;
  return *found;
}

double mean_surprise(const std::vector<float>& logits, const std::vector<int32_t>& ids) {
  double sum = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const float* row = logits.data() + i * kVocab;
    double total = 0;
    for (int64_t v = 0; v < kVocab; ++v) total += std::exp(static_cast<double>(row[v]));
    sum += std::log(total) - static_cast<double>(row[ids[i + 1]]);
  }
  return sum / static_cast<double>(ids.size() - 1);
}

TEST(Eval, WritesLogitsExpertsAndGreedyTokensOfEachSequence) {
  const TemporaryFolder folder;
  const std::string file_name = folder / "out.safetensors";
  const std::vector<std::vector<int32_t>> sequences = {{5, 7, 11, 13, 17}, {300, 2, 1}};
  const Outcome outcome = run_program(
      {"eval", "--model", golden_folder("qwen3_moe"), "--ids", "-", "--logits", file_name, "--greedy", "4"},
      Json(sequences).dump());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const SafetensorsFile file = SafetensorsFile::open(file_name);
  for (size_t j = 0; j < sequences.size(); ++j) {
    const std::string index = std::to_string(j);
    const auto n = static_cast<int64_t>(sequences[j].size());
    const std::vector<float> logits = to_f32(tensor(file, "logits." + index, DType::kF32, {n, kVocab}));
    for (const char* layer : {"0", "1", "2"})
      tensor(file, "topk." + index + "." + layer, DType::kI32, {n, kTopK});
    const auto greedy = Golden::integers(tensor(file, "greedy." + index, DType::kI32, {n + 4}));
    EXPECT_TRUE(std::equal(sequences[j].begin(), sequences[j].end(), greedy.begin()));
    const float* last = logits.data() + (n - 1) * kVocab;
    EXPECT_EQ(greedy[static_cast<size_t>(n)], std::max_element(last, last + kVocab) - last);
    const std::string line =
        "sequence " + index + ": " + std::to_string(n) + " tokens, mean negative log-likelihood ";
    const size_t at = outcome.out.find(line);
    ASSERT_NE(at, std::string::npos) << outcome.out;
    EXPECT_NEAR(std::stod(outcome.out.substr(at + line.size())), mean_surprise(logits, sequences[j]), 1e-5);
  }
  EXPECT_THAT(outcome.out, HasSubstr("\nall: 6 predictions, mean negative log-likelihood "));
}

TEST(Eval, DecodingOneByOneAndOtherChunksGiveTheSameBytes) {
  const TemporaryFolder folder;
  const std::string ids = Json(std::vector<int>{9, 8, 7, 6, 5, 4, 3, 2, 1}).dump();
  const auto logits_with = [&](const Arguments& more) {
    const std::string file = folder / "out.safetensors";
    Arguments arguments = {"eval",     "--model", golden_folder("qwen3_moe_nvfp4"), "--ids", "-",
                           "--logits", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run_program(arguments, ids).exit_code, 0);
    return read_text_file(file);
  };
  const std::string whole = logits_with({});
  EXPECT_GT(whole.size(), 9u * 4 * 100);
  EXPECT_EQ(logits_with({"--decode-from", "4"}), whole);
  EXPECT_EQ(logits_with({"--decode-from", "0", "--threads", "1"}), whole);
  EXPECT_EQ(logits_with({"--chunk", "2"}), whole);
}

TEST(Inspect, CountsTensorsAndBytesOfTheWholeCheckpoint) {
  const std::string folder = golden_folder("qwen3_moe_nvfp4");
  const Outcome outcome = run_program({"inspect", "--model", folder, "--json", "--tensors"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["family"], "qwen3_moe");
  EXPECT_EQ(json["architecture"], "Qwen3MoeForCausalLM");
  EXPECT_EQ(json["layers"], 3);
  EXPECT_EQ(json["expert_formats"], Json({"nvfp4"}));
  const SafetensorsFile file = SafetensorsFile::open(folder + "/model.safetensors");
  uint64_t bytes = 0;
  for (const Tensor& t : file.tensors()) bytes += t.bytes.size();
  EXPECT_EQ(json["total"]["tensors"], file.tensors().size());
  EXPECT_EQ(json["total"]["bytes"], bytes);
  EXPECT_EQ(json["tensors"].size(), file.tensors().size());
}

TEST(Inspect, PeopleGetATableWithTheSameTotal) {
  const Outcome outcome = run_program({"inspect", "--model", golden_folder("qwen3_moe_v4config_sharded")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part :
       {"architecture    Qwen3MoeForCausalLM\n", "kind ", "experts ", "attention ", "total ", "BF16"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

double likelihood(const std::string& model) {
  const Outcome result = run_program({"eval", "--model", model, "--compute", "f32", "--ids", "-"},
                                     "[5, 7, 11, 13, 17, 19, 23, 29]");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return std::stod(result.out.substr(result.out.rfind(' ')));
}

struct Conversion {
  std::string model, format;
  double
      share;  // how far the likelihood may be from the original's: more than measured, far less than broken
};

class ConvertAndRun : public ::testing::TestWithParam<Conversion> {};

TEST_P(ConvertAndRun, ConvertedCheckpointRunsAndSaysNearlyTheSame) {
  const auto& [model, format, share] = GetParam();
  const TemporaryFolder folder;
  const std::string converted = folder / "converted";
  const Outcome outcome =
      run_program({"convert", "--model", golden_folder(model), "--out", converted, "--format", format});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::parse(run_program({"inspect", "--model", converted, "--json"}).out);
  EXPECT_EQ(summary["expert_formats"], Json({format == "fp8" ? "fp8_block" : format}));
  const double before = likelihood(golden_folder(model)), after = likelihood(converted);
  EXPECT_NEAR(after, before, share * before);
  EXPECT_NE(after, before);
}

INSTANTIATE_TEST_SUITE_P(
    Goldens, ConvertAndRun,
    ::testing::Values(Conversion{"qwen3_moe", "nvfp4", 0.1}, Conversion{"qwen3_moe", "fp8", 0.01},
                      Conversion{"qwen3_moe_mixed_dense", "fp8", 0.01}, Conversion{"qwen2_moe", "fp8", 0.01},
                      Conversion{"olmoe", "fp8", 0.01}, Conversion{"mixtral", "fp8", 0.01}),
    [](const auto& each) { return each.param.model + "_" + each.param.format; });

}  // namespace
}  // namespace sluice::testing
