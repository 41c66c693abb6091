// Errors and broken invariants.
#include "base/error.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(Error, CarriesItsCodeAndMessage) {
  const Error error(ErrorCode::kBadFile, "model.safetensors: truncated");
  EXPECT_EQ(error.code(), ErrorCode::kBadFile);
  EXPECT_STREQ(error.what(), "model.safetensors: truncated");
}

TEST(Error, GivesEachCodeAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kBadFile, ErrorCode::kNotFound, ErrorCode::kUnsupported,
        ErrorCode::kOutOfMemory, ErrorCode::kCancelled, ErrorCode::kIo}) {
    EXPECT_NE(name_of(code), "unknown");
    EXPECT_TRUE(words.insert(name_of(code)).second) << name_of(code);
  }
}

TEST(CheckDeathTest, PrintsPlaceConditionAndDetailAndAborts) {
  const int slots = 3;
  EXPECT_DEATH(SLUICE_CHECK_MSG(slots == 4, "slots"), "error_test.cc:[0-9]+: slots == 4: slots");
  EXPECT_DEATH(SLUICE_CHECK(slots > 3), "slots > 3");
  SLUICE_CHECK(slots == 3);
}

}  // namespace
}  // namespace sluice
