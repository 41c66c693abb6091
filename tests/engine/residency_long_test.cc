// The whole matrix of residency switches.
#include <gtest/gtest.h>

#include "engine/residency_matrix.h"

namespace sluice::testing {
namespace {

class WholeResidencyMatrix : public ::testing::TestWithParam<size_t> {};

constexpr size_t kCombinations = 256, kParts = 8;

TEST_P(WholeResidencyMatrix, ChangesNoBit) {
  const std::vector<Combination> matrix = residency_matrix(kCombinations);
  for (size_t i = GetParam(); i < matrix.size(); i += kParts) expect_residency_changes_nothing(matrix[i]);
}

INSTANTIATE_TEST_SUITE_P(Parts, WholeResidencyMatrix, ::testing::Range(size_t{0}, kParts));

}  // namespace
}  // namespace sluice::testing
