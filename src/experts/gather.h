// Copies of packed rows by a plan that lies on the device: the gather kernel, which reads mapped host memory.
#pragma once

#include "device/stream.h"
#include "experts/slot_map.h"

namespace sluice {

/// For each entry of `plan`: target row dst_slot = source row src_row, rows of `row_bytes`. Source and target
/// may be one pool (adoption) as long as no row is both.
void gather_rows(Stream& stream, const char* name, const CopyPlan& plan, const std::byte* source,
                 std::byte* target, size_t row_bytes);

/// The same for a plan over the layers of a pool: an entry's source is layer * experts + expert, and the rows
/// of layer l begin at bases[l] [layers], a table in device memory.
void gather_layer_rows(Stream& stream, const char* name, const CopyPlan& plan, const std::byte* const* bases,
                       int32_t layers, int32_t experts, std::byte* target, size_t row_bytes);

}  // namespace sluice
