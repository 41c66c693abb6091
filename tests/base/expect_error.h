// Expecting an Error by its code and by what its message must tell the user.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace sluice::testing {

/// `action` must throw an Error of `code` whose message holds every one of `parts`.
template <class Action>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(name_of(error.code()), name_of(code)) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    return;
  }
  ADD_FAILURE() << "no Error was thrown; expected " << name_of(code);
}

}  // namespace sluice::testing
