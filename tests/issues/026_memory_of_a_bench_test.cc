// `bench link --bytes 1TB` wrote to memory until the system ended it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/program.h"

namespace sluice::testing {
namespace {

TEST(MemoryOfABench, IsThereOrItIsRefusedWithWhatWouldFit) {
  for (const char* bytes : {"100TB", "10000000TB"}) {
    const Outcome outcome =
        expect_refusal({"bench", "link", "--device", "cpu", "--bytes", bytes},
                       {std::string("--bytes ") + bytes + ": needs twice that in host memory", " are free (",
                        "from 64MiB to ", " would fit"});
    EXPECT_LT(outcome.peak_bytes, 200'000'000);
  }
  for (const char* bytes : {"99999999999GB", "1MB", "many"}) {
    expect_wrong_usage({"bench", "link", "--bytes", bytes},
                       {std::string("--bytes ") + bytes, "from 64MiB to the memory that is free"});
  }
  EXPECT_THAT(run_program({"bench", "link", "--help"}).out, ::testing::HasSubstr("from 64MiB to what host"));
}

}  // namespace
}  // namespace sluice::testing
