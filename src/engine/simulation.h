// One prompt and its answer on a simulated machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "device/timed/timed_device.h"
#include "engine/runtime.h"
#include "engine/session.h"

namespace sluice {

struct SimulatedRequest {
  int64_t prompt_tokens = 512, decode_tokens = 64;
  int64_t warm_tokens = 0;  // decode steps of another text before, so that slots hold what such a text leaves
};

struct SimulatedRun {
  double ttft_ms = 0, tokens_per_s = 0;
  double prefill_link_share = 0, decode_link_share = 0;  // of the time that the link to the device is busy
  double prefill_link_bytes_per_s = 0;                   // over the whole time to the first token
};

/// Runs the request through a new session of `runtime`, whose device is `clock`.
SimulatedRun simulate(Runtime& runtime, const TimedDevice& clock, const SessionOptions& options,
                      const SimulatedRequest& request);

/// The switches of a published comparison: copies of whole layers, by priority of the copy stream and by who
/// unmaps the slots that they overwrite.
struct Arm {
  std::string name;
  bool high_copy_priority = false, epoch_invalidation = false;
};
std::span<const Arm> published_arms();  // neither, priority, epoch, both
/// Settings of an arm: a streaming pass that moves every expert through the slots of two layers, one a tile,
/// with the slots of a decode step beside them.
ExpertSettings arm_settings(const Arm& arm, const ExpertShape& shape);

}  // namespace sluice
