// Run-time choice of instructions.
#include "base/cpu.h"

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace sluice {
namespace {

SimdLevel detected() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return SimdLevel::kAvx2;
#endif
  return SimdLevel::kScalar;
}

SimdLevel chosen() {
  const char* wish = std::getenv("SLUICE_SIMD");
  if (wish == nullptr || *wish == '\0') return detected();
  for (const SimdLevel level : {SimdLevel::kScalar, SimdLevel::kAvx2}) {
    if (wish != name_of(level)) continue;
    if (level > detected()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "SLUICE_SIMD=" + std::string(wish) + ": this processor does not have it; unset it");
    }
    return level;
  }
  throw Error(ErrorCode::kInvalidArgument,
              "SLUICE_SIMD=" + std::string(wish) + ": known values are scalar, avx2");
}

}  // namespace

SimdLevel simd_level() {
  static const SimdLevel level = chosen();
  return level;
}

std::string_view name_of(SimdLevel level) {
  return level == SimdLevel::kAvx2 ? std::string_view("avx2") : std::string_view("scalar");
}

}  // namespace sluice
