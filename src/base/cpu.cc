// What this processor has.
#include "base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"

namespace sluice {
namespace {

constexpr SimdLevel kLevels[] = {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512};

SimdLevel detected() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return SimdLevel::kScalar;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 ? SimdLevel::kAvx512 : SimdLevel::kAvx2;
#else
  return SimdLevel::kScalar;
#endif
}

SimdLevel chosen() {
  const char* wish = std::getenv("SLUICE_SIMD");
  // AVX-512 has not been measured to be quicker on any processor
  // (docs/decisions/001-canonical-dot-product.md).
  if (wish == nullptr || *wish == '\0') return std::min(best_simd_level(), SimdLevel::kAvx2);
  for (const SimdLevel level : kLevels) {
    if (wish != name_of(level)) continue;
    if (level > best_simd_level()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "SLUICE_SIMD=" + std::string(wish) + ": this processor does not have it; unset it");
    }
    return level;
  }
  throw Error(ErrorCode::kInvalidArgument,
              "SLUICE_SIMD=" + std::string(wish) + ": known values are scalar, avx2, avx512");
}

}  // namespace

SimdLevel best_simd_level() {
  static const SimdLevel level = detected();
  return level;
}

SimdLevel simd_level() {
  static const SimdLevel level = chosen();
  return level;
}

std::string_view name_of(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return "scalar";
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
  }
  return "unknown";
}

int physical_cores() {
  cpu_set_t mask;
  std::set<std::pair<int, int>> cores;  // (package, core)
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mask)) continue;
      const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      std::ifstream package_file(folder + "physical_package_id"), core_file(folder + "core_id");
      int package = 0, core = 0;
      if (package_file >> package && core_file >> core) cores.emplace(package, core);
    }
  }
  const int usable = usable_cores();  // a quota may allow fewer; without the files every thread is a core
  return cores.empty() ? usable : std::min(usable, static_cast<int>(cores.size()));
}

}  // namespace sluice
