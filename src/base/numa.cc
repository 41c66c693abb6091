// mbind and move_pages by number: Debian's libnuma would add a dependency for two calls.
#include "base/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/node_list.h"

namespace sluice {
namespace {

constexpr int kMostNodes = 1024;
constexpr size_t kSampledPages = 256;  // of a range: shares to half a percent are enough for a report

std::string join(const std::vector<int>& nodes) {
  std::string list;
  for (const int node : nodes) list += (list.empty() ? "" : ", ") + std::to_string(node);
  return list;
}

class NodeMask {
 public:
  void set(int node) {
    if (node >= 0 && node < kMostNodes) words_[static_cast<size_t>(node) / 64] |= 1UL << (node % 64);
  }
  const unsigned long* words() const { return words_.data(); }

 private:
  std::array<unsigned long, kMostNodes / 64> words_{};
};

}  // namespace

NumaPolicy parse_numa(std::string_view text, const std::vector<int>& nodes) {
  if (text == "gpu") return {NumaPolicy::kNear, -1};
  if (text == "interleave") return {NumaPolicy::kInterleave, -1};
  constexpr std::string_view kPrefix = "node:";
  int node = -1;
  const char* end = text.data() + text.size();
  if (text.starts_with(kPrefix)) {
    const auto [stop, error] = std::from_chars(text.data() + kPrefix.size(), end, node);
    if (error == std::errc() && stop == end && std::count(nodes.begin(), nodes.end(), node) > 0) {
      return {NumaPolicy::kNode, node};
    }
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      "--numa " + std::string(text) + ": expected gpu, interleave or node:K with K one of " + join(nodes));
}

std::vector<int> numa_nodes() {
  std::ifstream file("/sys/devices/system/node/online");
  std::string line;
  std::getline(file, line);
  return parse_node_list(line);
}

std::vector<int> parse_node_list(const std::string& text) {
  std::istringstream list(text);
  std::vector<int> nodes;
  for (std::string range; std::getline(list, range, ',');) {
    std::istringstream numbers(range);
    int first = 0, last = 0;
    if (!(numbers >> first)) break;
    last = first;
    if (numbers.get() == '-') numbers >> last;
    for (int node = first; node <= last && node < kMostNodes; ++node) nodes.push_back(node);
  }
  if (nodes.empty()) nodes.push_back(0);
  return nodes;
}

int current_numa_node() {
  unsigned cpu = 0, node = 0;
  return ::syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? static_cast<int>(node) : 0;
}

std::string place_pages(void* data, size_t bytes, const NumaPolicy& policy, int near) {
  const std::vector<int> nodes = numa_nodes();
  if (bytes == 0 || nodes.size() < 2) return {};
  NodeMask mask;
  // A preferred node is no promise: where it is full, pages come from the others.
  int mode = MPOL_PREFERRED;
  if (policy.kind == NumaPolicy::kInterleave) {
    mode = MPOL_INTERLEAVE;
    for (const int node : nodes) mask.set(node);
  } else {
    mask.set(policy.kind == NumaPolicy::kNode ? policy.node : near);
  }
  if (::syscall(SYS_mbind, data, bytes, mode, mask.words(), static_cast<unsigned long>(kMostNodes), 0UL) ==
      0) {
    return {};
  }
  return std::string("mbind: ") + std::strerror(errno);
}

void add_page_share(const void* data, size_t bytes, PageShare& share) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t pages = bytes / page;
  if (pages == 0) return;
  std::vector<void*> sample;
  for (size_t i = 0; i < std::min(pages, kSampledPages); ++i) {
    const size_t at = i * pages / std::min(pages, kSampledPages);
    sample.push_back(const_cast<std::byte*>(static_cast<const std::byte*>(data)) + at * page);
  }
  std::vector<int> status(sample.size(), -1);
  if (::syscall(SYS_move_pages, 0, sample.size(), sample.data(), nullptr, status.data(), 0) != 0) {
    share.unknown = std::string("move_pages: ") + std::strerror(errno);
    return;
  }
  std::map<int, uint64_t> found;
  uint64_t known = 0;
  for (const int node : status) {
    if (node < 0) continue;  // not touched
    ++found[node];
    ++known;
  }
  for (const auto& [node, count] : found) share.node_bytes[node] += bytes * count / known;
}

}  // namespace sluice
