// A model of random weights in memory, for benches, and the flags that describe it.
#pragma once

#include <memory>
#include <string>

#include "apps/device_options.h"
#include "apps/expert_options.h"
#include "apps/host_row_options.h"
#include "checkpoint/synth.h"
#include "device/device.h"
#include "engine/runtime.h"

namespace sluice::apps {

class Command;

/// --synth and what changes it.
struct SynthOptions {
  std::string shape = "q36", format = "nvfp4";
  int64_t layers = 0, seed = 1;

  void add_to(Command& command, const char* name);
  SynthShape resolve() const;
};

struct SynthModelOptions {
  SynthOptions synth;
  DeviceOptions device;
  ExpertOptions experts;
  HostRowFlags host_rows;
  int threads = 0;
  int64_t chunk_tokens = 512;

  void add_to(Command& command);
};

/// Its routes are generated: random weights do not route like trained ones.
struct SynthModel {
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  Buffer topic;
  std::unique_ptr<Model> model;

  static SynthModel load(const SynthModelOptions& options);
  /// From now on tokens are about something else.
  void set_topic(int32_t topic) const;
  /// The settings of `experts`, with the slots that `context_tokens` leave room for where it says auto.
  ExpertSettings settings(const ExpertOptions& experts, int64_t context_tokens) const;
};

}  // namespace sluice::apps
