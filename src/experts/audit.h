// The audit: every held slot holds the bytes of its host row, and both maps agree.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "experts/expert_state.h"

namespace sluice {

/// What one audit of a pool found, written on the device.
struct AuditResult {
  int64_t slots_checked = 0;
  int64_t violations = 0;
  std::array<int32_t, 8> slots{};        // of the first violations
  std::array<int32_t, 8> ids{};          // layer * experts + expert: whose bytes the slot should hold
  std::array<SlotHistory, 8> writers{};  // who wrote these slots last
};

/// Compares the pool's slots with their host rows on `stream`; the result is in `result` once it has run.
/// Nothing else may write slots meanwhile: every stream that does has been joined.
void audit(Stream& stream, const ExpertState& state, const ExpertPool& pool, AuditResult* result);

/// One line that names the slots, their owners and their last writers.
std::string describe(const AuditResult& result, const ExpertPool& pool);

}  // namespace sluice
