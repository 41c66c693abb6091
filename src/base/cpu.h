// Which instructions this processor has.
#pragma once

#include <string_view>

namespace sluice {

/// kAvx2 includes FMA and F16C; kAvx512 is F, BW, VL and DQ.
enum class SimdLevel { kScalar, kAvx2, kAvx512 };

/// The best level of this processor.
SimdLevel best_simd_level();
/// That, or the one that SLUICE_SIMD (scalar, avx2, avx512) asks for if the processor has it. Throws Error
/// kInvalidArgument for an unknown or unavailable value.
SimdLevel simd_level();

std::string_view name_of(SimdLevel level);

/// Physical cores among those that this process may use (threads of one core count once), at least 1.
int physical_cores();

}  // namespace sluice
