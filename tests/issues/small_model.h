// A tiny checkpoint and what it says without slots.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/expect_error.h"
#include "checkpoint/checkpoint.h"
#include "engine/session.h"

namespace sluice::testing {

inline std::vector<float> values(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

/// 3 MoE layers of 8 experts, 2 a token.
struct SmallModel {
  Checkpoint checkpoint =
      Checkpoint::open(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/golden/qwen3_moe");
  std::unique_ptr<Device> device = make_host_device(1);
  std::unique_ptr<Model> model = load_model(checkpoint, *device, {});

  std::vector<float> logits(const std::vector<int32_t>& ids) {
    Runtime runtime(*device, *model, ExpertSettings());
    Session session(runtime, {.capacity_tokens = 64});
    return values(session.prefill(ids));
  }
};

}  // namespace sluice::testing
