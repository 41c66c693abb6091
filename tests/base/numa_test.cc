// Memory nodes: what users write, and what any machine must answer.
#include "base/numa.h"

#include <cstring>

#include "base/expect_error.h"
#include "base/node_list.h"

namespace sluice {
namespace {

using sluice::testing::expect_error;

TEST(Numa, ReadsPolicies) {
  EXPECT_EQ(parse_numa("gpu", {0}).kind, NumaPolicy::kNear);
  EXPECT_EQ(parse_numa("interleave", {0}).kind, NumaPolicy::kInterleave);
  EXPECT_EQ(parse_numa("node:2", {0, 2}), (NumaPolicy{NumaPolicy::kNode, 2}));
}

TEST(Numa, RefusesOtherWordsAndNodesThatAreNotThere) {
  for (const char* text : {"", "node:", "node:1", "node:2x", "node:-1", "near"}) {
    expect_error(ErrorCode::kInvalidArgument, {"--numa", "interleave", "K one of 0, 2"}, [&] {
      parse_numa(text, {0, 2});
    });
  }
}

TEST(Numa, EveryMachineHasANodeThatRunsThisThread) {
  const std::vector<int> nodes = numa_nodes();
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), current_numa_node()), 1);
}

TEST(Numa, ReadsTheSystemsListOfNodes) {
  EXPECT_EQ(parse_node_list("0\n"), (std::vector<int>{0}));
  EXPECT_EQ(parse_node_list("0-1\n"), (std::vector<int>{0, 1}));
  EXPECT_EQ(parse_node_list("0,2-4,7\n"), (std::vector<int>{0, 2, 3, 4, 7}));
  EXPECT_EQ(parse_node_list(""), (std::vector<int>{0}));
  EXPECT_EQ(parse_node_list("no list"), (std::vector<int>{0}));
}

TEST(Numa, PagesAreCountedOrTheRefusalIsNamed) {
  std::vector<char> memory(1 << 20);
  const std::string refusal = place_pages(memory.data(), 0, {}, 0);
  EXPECT_EQ(refusal, "") << "nothing to place";
  std::memset(memory.data(), 1, memory.size());
  PageShare share;
  add_page_share(memory.data(), memory.size(), share);
  add_page_share(memory.data(), memory.size() / 2, share);
  uint64_t sum = 0;
  for (const auto& [node, bytes] : share.node_bytes) sum += bytes;
  if (share.unknown.empty()) {
    EXPECT_NEAR(static_cast<double>(sum), 1.5 * static_cast<double>(memory.size()), 1 << 15);
  } else {
    EXPECT_EQ(sum, 0u);
  }
}

}  // namespace
}  // namespace sluice
