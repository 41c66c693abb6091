// How much host memory this process may still use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sluice {

struct HostMemory {
  uint64_t free_bytes = UINT64_MAX;
  std::string limit;  // what sets it: "MemAvailable of /proc/meminfo", "/sys/fs/cgroup/box/memory.max"
};

/// The least of what the machine has free and of what each enclosing control group (v1 or v2) leaves of its
/// limit; pages of the file cache count as free. Files are looked up below `root`. Never throws: what cannot
/// be read is no limit.
HostMemory free_host_memory(const std::filesystem::path& root = "/");

}  // namespace sluice
