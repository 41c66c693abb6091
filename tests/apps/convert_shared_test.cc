// The demo model before it was quantised, converted.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;

double likelihood(const std::string& model, const std::string& ids) {
  const Outcome result = run_program({"eval", "--model", model, "--ids", "-"}, ids);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return std::stod(result.out.substr(result.out.rfind(' ')));
}

TEST(ConvertDemo, SaysNearlyTheSameAfterwards) {
  const TemporaryFolder folder;
  const std::string original = SLUICE_SHARED_DIR "/models/demo";
  const auto golden =
      nlohmann::json::parse(read_text_file(SLUICE_SOURCE_DIR "/tests/golden/demo-golden.json"));
  std::vector<int32_t> first = golden.at("perplexity").at("ids");
  first.resize(256);
  const std::string ids = nlohmann::json(first).dump();
  const double before = likelihood(original, ids);
  // What one rounding of each weight to 3 or to 1 bits of mantissa may cost.
  for (const auto& [format, share] : {std::pair("fp8", 0.01), {"nvfp4", 0.05}}) {
    const fs::path out = folder / format;
    ASSERT_EQ(
        run_program({"convert", "--model", original, "--out", out.string(), "--format", format}).exit_code,
        0);
    const double after = likelihood(out, ids);
    EXPECT_NEAR(after, before, share * before) << format;
    EXPECT_NE(after, before);
  }
}

}  // namespace
}  // namespace sluice::testing
