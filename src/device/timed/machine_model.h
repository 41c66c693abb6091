// What a machine takes for an operation.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// Rates are sustained ones, of what a good kernel reaches, not peaks of a data sheet. Times in microseconds.
struct MachineModel {
  std::string name;
  double link_bytes_per_s = 0;    // one large page-locked copy; each direction by itself
  double memory_bytes_per_s = 0;  // of the card
  double flops_per_s = 0;         // bf16 products with f32 sums
  double device_bytes = 0;        // memory of the card

  double link_latency_us = 3.0;      // from the copy's turn to its first byte
  double link_entry_us = 0.4;        // between the entries of a batch
  double link_entry_min_us = 1.6;    // an entry of a batch takes no less
  double gather_share = 0.92;        // of the link's rate for kernels that read mapped host memory
  double launch_us = 1.0;            // of each kernel
  double small_kernel_us = 2.0;      // a kernel with less work than this takes this long
  double small_kernel_share = 0.05;  // of the card's blocks, for such a kernel
  double wave_us = 200;              // how long blocks of a kernel that fills the card run
  double host_call_us = 1.5;         // what a call that queues something costs the host
  double host_wait_us = 8.0;         // from the end of what the host waits for to its next call
  double share = 1.0;                // of the card's compute and memory rate that is ours
};

/// Known machines. The link figures of "h200" and the costs of small entries and kernels are measured; the
/// others follow from published specifications with 85 % of the memory rate and 60 % of the tensor rate.
std::span<const MachineModel> machine_models();
/// Throws Error kNotFound that lists the names.
const MachineModel& machine_model(std::string_view name);

}  // namespace sluice
