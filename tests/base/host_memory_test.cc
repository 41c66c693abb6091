// Limits of host memory, from files as the kernel writes them.
#include "base/host_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_folder.h"

namespace sluice {
namespace {

class FreeHostMemory : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void machine(int64_t kib) {
    write("proc/meminfo",
          "MemTotal: 900000 kB\nMemFree: 1 kB\nMemAvailable: " + std::to_string(kib) + " kB\n");
  }
  void expect(uint64_t bytes, const std::string& limit) const {
    const HostMemory memory = free_host_memory(root_.path());
    EXPECT_EQ(memory.free_bytes, bytes);
    EXPECT_EQ(memory.limit, limit);
  }

  testing::TemporaryFolder root_;
};

TEST_F(FreeHostMemory, IsWhatTheMachineHasWithoutGroups) {
  machine(2000);
  expect(2000 * 1024, "MemAvailable of /proc/meminfo");
}

TEST_F(FreeHostMemory, IsUnlimitedWhereNothingCanBeRead) { expect(UINT64_MAX, ""); }

TEST_F(FreeHostMemory, IsLimitedByAnOuterGroupOfVersion2) {
  machine(2000);
  write("proc/self/cgroup", "0::/box/inner\n");
  write("sys/fs/cgroup/box/inner/memory.max", "max\n");
  write("sys/fs/cgroup/box/inner/memory.current", "5000\n");
  write("sys/fs/cgroup/box/memory.max", "1000000\n");
  write("sys/fs/cgroup/box/memory.current", "300000\n");
  write("sys/fs/cgroup/box/memory.stat", "anon 100000\ninactive_file 150000\nactive_file 50000\n");
  expect(900000, "/sys/fs/cgroup/box/memory.max");
}

TEST_F(FreeHostMemory, IsLimitedByTheInnerGroupWhereThatIsSmaller) {
  machine(2000);
  write("proc/self/cgroup", "0::/box/inner\n");
  write("sys/fs/cgroup/box/inner/memory.max", "7000\n");
  write("sys/fs/cgroup/box/inner/memory.current", "8000\n");
  write("sys/fs/cgroup/box/memory.max", "1000000\n");
  write("sys/fs/cgroup/box/memory.current", "300000\n");
  expect(0, "/sys/fs/cgroup/box/inner/memory.max");
}

TEST_F(FreeHostMemory, IsLimitedByAGroupOfVersion1) {
  machine(2000);
  write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/box\n1:cpu:/\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "100000\n");
  write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "60000\n");
  write("sys/fs/cgroup/memory/box/memory.stat", "total_inactive_file 1000\ntotal_active_file 2000\n");
  expect(43000, "/sys/fs/cgroup/memory/box/memory.limit_in_bytes");
}

// Inside a container the path is the host's, and its outer folders are not there.
TEST_F(FreeHostMemory, FindsTheGroupThatAContainerSees) {
  machine(2000);
  write("proc/self/cgroup", "4:memory:/docker/0123\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "100000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "60000\n");
  expect(40000, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
}

}  // namespace
}  // namespace sluice
