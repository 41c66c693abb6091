// Lists of resident experts: what was written comes back, and nothing wrong is believed.
#include "experts/residency_file.h"

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace sluice {
namespace {

using sluice::testing::expect_error;
using sluice::testing::TemporaryFolder;

class ResidencyFile : public ::testing::Test {
 protected:
  std::string write() {
    write_residency(path_, model_, residents_);
    return read_text_file(path_);
  }
  void expect_refused(const std::string& bytes, const std::vector<std::string>& parts,
                      ErrorCode code = ErrorCode::kBadFile) {
    write_file_atomically(path_, bytes);
    std::vector<std::string> all = parts;
    all.push_back(path_.string());
    all.push_back("remove it or name another file");
    expect_error(code, all, [&] { read_residency(path_, model_); });
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "experts";
  const ResidencyModel model_ = {"qwen3_moe", 3, 300, 4, 77};
  const std::vector<Resident> residents_ = {{2, 299}, {0, 0}, {1, 17}};
};

TEST_F(ResidencyFile, ComesBackInItsOrder) {
  write();
  EXPECT_EQ(read_residency(path_, model_), residents_);
}

TEST_F(ResidencyFile, IsRefusedWhereverItIsCut) {
  const std::string bytes = write();
  for (size_t n = 0; n < bytes.size(); ++n) {
    expect_refused(bytes.substr(0, n), {n < 8 ? "is no list of resident experts" : "cut short"});
  }
  expect_refused(bytes + "x", {"goes on after its end"});
}

TEST_F(ResidencyFile, IsRefusedWhereverAByteIsWrong) {
  const std::string bytes = write();
  for (size_t i = 12; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    expect_refused(damaged, {});
  }
}

TEST_F(ResidencyFile, OfAnotherModelIsRefusedWithBoth) {
  ResidencyModel other = model_;
  other.fingerprint = 78;
  write_residency(path_, other, residents_);
  expect_refused(read_text_file(path_),
                 {"of another model", "checkpoint 000000000000004e", "000000000000004d"});
  other = model_;
  other.experts = 8;
  write_residency(path_, other, {});
  expect_refused(read_text_file(path_), {"of another model", "3 MoE layers of 8 experts", "of 300 experts"});
}

TEST_F(ResidencyFile, ThatNamesAnAbsentExpertIsRefused) {
  write_residency(path_, model_, std::vector<Resident>{{0, 300}});
  expect_refused(read_text_file(path_), {"an expert that the model does not have"});
}

TEST_F(ResidencyFile, OfANewerFormatIsRefused) {
  std::string bytes = write();
  bytes[8] = 2;
  expect_refused(bytes, {"version 2"}, ErrorCode::kUnsupported);
}

Trace small_trace(std::vector<TraceStep> steps, std::vector<uint16_t> ids) {
  Trace trace;
  trace.model = {"qwen3_moe", 4, 2, {{0, 16}, {1, 16}}};
  trace.steps = std::move(steps);
  trace.ids = std::move(ids);
  return trace;
}

TEST(Popularity, PutsTheMostUsedExpertLastAndLowerIdsAfterHigherOnes) {
  const Trace trace = small_trace({{StepKind::kDecode, 1, 0}, {StepKind::kDecode, 1, 4}},
                                  {0, 1, 2, 3, 0, 2, 3, Trace::kNoExpert});
  EXPECT_EQ(popularity(trace), (std::vector<Resident>{{1, 2}, {0, 2}, {0, 1}, {1, 3}, {0, 0}}));
}

TEST(HottestLayers, AreThoseWithTheFewestResidentsThenTheLower) {
  const std::vector<Resident> residents = {{0, 1}, {2, 5}, {2, 6}, {3, 1}, {2, 7}, {3, 2}};
  EXPECT_EQ(hottest_layers(residents, 5), (std::vector<int64_t>{1, 4, 0, 3, 2}));
  EXPECT_EQ(hottest_layers({}, 3), (std::vector<int64_t>{0, 1, 2}));
}

TEST(Popularity, CountsPromptsOnlyWhereNothingWasDecoded) {
  const std::vector<uint16_t> ids = {0, 1, 2, 3, 3, 2, 1, 0};
  const TraceStep prompt{StepKind::kPrefill, 1, 0}, decode{StepKind::kDecode, 1, 4};
  EXPECT_EQ(popularity(small_trace({prompt}, ids)).back(), (Resident{0, 0}));
  EXPECT_EQ(popularity(small_trace({prompt, decode}, ids)),
            (std::vector<Resident>{{1, 1}, {1, 0}, {0, 3}, {0, 2}}));
}

}  // namespace
}  // namespace sluice
