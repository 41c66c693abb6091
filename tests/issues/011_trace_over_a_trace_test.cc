// `trace record` emptied the trace that was there before it looked at its own input.
#include <gtest/gtest.h>

#include "apps/program.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace sluice::testing {
namespace {

class TraceOverATrace : public ::testing::Test {
 protected:
  Outcome record(const Arguments& more, const std::string& input = "") const {
    Arguments all = {"trace", "record", "--model", demo_model(), "--max-tokens", "2", "--out", file_};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all, input);
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "a.trace";
};

TEST_F(TraceOverATrace, IsReplacedByAWholeOneOnly) {
  ASSERT_EQ(record({"--prompt", "To be"}).exit_code, 0);
  const std::string before = read_text_file(file_);
  for (const char* ids : {"[1, 99999]", "[[1, 2], [1, 99999]]", "[[1, 2], []]", "[]"}) {
    const Outcome outcome = record({"--ids", "-"}, ids);
    EXPECT_EQ(outcome.exit_code, 1) << ids;
    EXPECT_EQ(read_text_file(file_), before) << ids;
  }
  EXPECT_EQ(record({"--prompt", ""}).exit_code, 1);
  EXPECT_EQ(read_text_file(file_), before);
  EXPECT_FALSE(std::filesystem::exists(file_ + ".partial"));
  ASSERT_EQ(record({"--prompt", "To be or not"}).exit_code, 0);
  EXPECT_NE(read_text_file(file_), before);
  EXPECT_FALSE(std::filesystem::exists(file_ + ".partial"));
}

TEST_F(TraceOverATrace, HasAReportOfTheSlots) {
  const std::string report = folder_ / "report.json";
  EXPECT_EQ(record({"--prompt", "To be", "--expert-slots", "64", "--report", report}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(report));
}

}  // namespace
}  // namespace sluice::testing
