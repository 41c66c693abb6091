// Cards by name.
#include "device/timed/machine_model.h"

#include <vector>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kMemoryReached = 0.85, kFlopsReached = 0.6;

MachineModel card(const char* name, double link_gb_per_s, double memory_gb_per_s, double tera_flops,
                  double gigabytes) {
  MachineModel model;
  model.name = name;
  model.link_bytes_per_s = link_gb_per_s * 1e9;
  model.memory_bytes_per_s = memory_gb_per_s * 1e9 * kMemoryReached;
  model.flops_per_s = tera_flops * 1e12 * kFlopsReached;
  model.device_bytes = gigabytes * 1e9;
  return model;
}

std::vector<MachineModel> make_models() {
  return {
      // PCIe 5 x16 gives 55 GB/s, PCIe 4 x16 26; bf16 with f32 sums, dense.
      card("rtx5070ti", 55, 896, 88, 16),
      card("rtx4090", 26, 1008, 165, 24),
      card("rtx5090", 55, 1792, 209, 32),
      card("h200", 55.2, 4800, 989, 141),
      // The card that the published figures come from: an RTX 5070 Ti under WSL2, whose link gave 44.2 GB/s.
      card("published", 44.2, 896, 88, 16),
  };
}

}  // namespace

std::span<const MachineModel> machine_models() {
  static const std::vector<MachineModel> models = make_models();
  return models;
}

const MachineModel& machine_model(std::string_view name) {
  std::string names;
  for (const MachineModel& model : machine_models()) {
    if (model.name == name) return model;
    names += (names.empty() ? "" : ", ") + model.name;
  }
  throw Error(ErrorCode::kNotFound, "no machine model '" + std::string(name) + "'; known are " + names);
}

}  // namespace sluice
