// What a checkpoint consists of: bytes by kind of tensor and by type, for people and for plans.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace sluice {

/// kMlp: dense layers and shared experts. kOther: everything else, vision towers and draft layers among it.
enum class TensorKind { kExperts, kAttention, kRouter, kMlp, kEmbeddings, kNorms, kOther };
std::string_view name_of(TensorKind kind);
/// Decided by the name alone.
TensorKind kind_of(std::string_view tensor_name);

struct Inventory {
  struct Amount {
    int64_t tensors = 0;
    uint64_t bytes = 0;
  };
  Amount total;
  std::map<TensorKind, Amount> by_kind;
  std::map<DType, Amount> by_type;
  std::set<std::string> expert_formats;  // "nvfp4", or the type of the tensors
  int64_t moe_layers = 0;                // layers with routed experts
};
Inventory take_inventory(const Checkpoint& checkpoint);

}  // namespace sluice
