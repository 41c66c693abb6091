// Where pages of host memory lie on machines with several memory nodes. System calls alone, no library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// kNear: on one node while it has memory, then on the others. kInterleave: page by page over all nodes.
/// kNode: as kNear, on a node that the user names.
struct NumaPolicy {
  enum Kind { kNear, kInterleave, kNode } kind = kNear;
  int node = -1;  // of kNode
  bool operator==(const NumaPolicy&) const = default;
};

/// "gpu" (kNear), "interleave" or "node:1". Throws Error kInvalidArgument for other words, and for a node
/// that is not among `nodes`.
NumaPolicy parse_numa(std::string_view text, const std::vector<int>& nodes);
/// The nodes that are online; {0} where the system does not say.
std::vector<int> numa_nodes();
/// The node of the core that runs this thread; 0 where the system does not say.
int current_numa_node();

/// Asks for pages of [data, data + bytes) that nobody has touched to be placed by `policy`; `near` is the
/// node of kNear. With one node there is nothing to do. Returns why the system refused, or nothing; the pages
/// then lie where they are first touched.
std::string place_pages(void* data, size_t bytes, const NumaPolicy& policy, int near);

/// How many bytes of a range lie on which node, by a sample of its pages.
struct PageShare {
  std::map<int, uint64_t> node_bytes;
  std::string unknown;  // why the system does not say
};
/// Adds the range to `share`.
void add_page_share(const void* data, size_t bytes, PageShare& share);

}  // namespace sluice
