// Checkpoints of random weights: in memory and written.
#include "checkpoint/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "checkpoint/weights.h"

namespace sluice::testing {
namespace {

SynthShape tiny(WeightFormat format) {
  SynthShape shape = synth_shape("tiny");
  shape.format = format;
  return shape;
}

class SynthFormat : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(SynthFormat, WrittenAndInMemoryTheTensorsAreTheSame) {
  const TemporaryFolder dir;
  const SynthShape shape = tiny(GetParam());
  const Checkpoint made = make_synth(shape, 7);
  uint64_t last = 0;
  write_synth(shape, 7, dir.path() / "out", [&](uint64_t done, uint64_t) { last = done; });
  const Checkpoint read = Checkpoint::open(dir.path() / "out");
  EXPECT_EQ(last, synth_bytes(shape));
  EXPECT_EQ(made.total_bytes(), synth_bytes(shape));
  ASSERT_EQ(read.tensors().size(), made.tensors().size());
  for (size_t i = 0; i < read.tensors().size(); ++i) {
    const Tensor &a = *read.tensors()[i], &b = *made.tensors()[i];
    ASSERT_EQ(a.name, b.name);
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_TRUE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end())) << a.name;
  }
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "out.partial"));
}

TEST_P(SynthFormat, ProductsKeepTheVarianceOfTheirInputs) {
  const SynthShape shape = tiny(GetParam());
  const Checkpoint made = make_synth(shape, 7);
  double squares = 0;
  int64_t values = 0;
  for (int64_t e = 0; e < shape.experts; ++e) {
    const std::string name = "model.layers.1.mlp.experts." + std::to_string(e) + ".gate_proj";
    for (const float value : to_f32(find_matrix(made, name, shape.intermediate, shape.hidden))) {
      ASSERT_TRUE(std::isfinite(value));
      squares += static_cast<double>(value) * value;
      ++values;
    }
  }
  const double variance = squares / static_cast<double>(values) * static_cast<double>(shape.hidden);
  EXPECT_GT(variance, 0.5);
  EXPECT_LT(variance, 2.0);
}

TEST_P(SynthFormat, ExpertsDifferAndFollowTheSeed) {
  const SynthShape shape = tiny(GetParam());
  const Checkpoint one = make_synth(shape, 7), same = make_synth(shape, 7), other = make_synth(shape, 8);
  const auto values = [&](const Checkpoint& checkpoint, int64_t expert) {
    const std::string name = "model.layers.2.mlp.experts." + std::to_string(expert) + ".up_proj";
    return to_f32(find_matrix(checkpoint, name, shape.intermediate, shape.hidden));
  };
  EXPECT_EQ(values(one, 3), values(same, 3));
  EXPECT_NE(values(one, 3), values(one, 4));
  EXPECT_NE(values(one, 3), values(other, 3));
}

INSTANTIATE_TEST_SUITE_P(Formats, SynthFormat, ::testing::ValuesIn(kSynthFormats),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(Synth, RefusesSizesThatContradictEachOther) {
  SynthShape shape = tiny(WeightFormat::kMxfp4);
  shape.hidden = 120;
  expect_error(ErrorCode::kInvalidArgument, {"mxfp4", "multiples of 32", "120"},
               [&] { make_synth(shape, 1); });
  shape = tiny(WeightFormat::kBf16);
  shape.top_k = shape.experts + 1;
  expect_error(ErrorCode::kInvalidArgument, {"tiny", "contradict"}, [&] { make_synth(shape, 1); });
  expect_error(ErrorCode::kNotFound, {"no shape 'huge'", "q36", "dsv4"}, [] { synth_shape("huge"); });
}

TEST(Synth, DoesNotWriteOverAFolder) {
  const TemporaryFolder dir;
  std::filesystem::create_directory(dir.path() / "out");
  expect_error(ErrorCode::kInvalidArgument, {"exists already"},
               [&] { write_synth(synth_shape("tiny"), 1, dir.path() / "out", {}); });
}

TEST(Synth, PublishedShapesHaveTheirPublishedRows) {
  const SynthShape& q36 = synth_shape("q36");
  EXPECT_EQ(row_layout(q36.format, q36.hidden, q36.intermediate).row_bytes, 1769472u);
}

}  // namespace
}  // namespace sluice::testing
