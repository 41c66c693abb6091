// From what an operation declares to what it takes.
#pragma once

#include "device/memory_map.h"
#include "device/stream.h"
#include "device/timed/card.h"
#include "device/timed/machine_model.h"

namespace sluice {

/// Asks the operation's data_ranges too, so memory is as at its start. Lane, priority and times stay unset.
CardJob price(const QueuedOp& op, const MemoryMap& memory, const MachineModel& model);

}  // namespace sluice
