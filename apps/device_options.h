// The flags that say on which device a model runs.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"
#include "models/model.h"

namespace sluice::apps {

class Command;

struct DeviceOptions {
  std::string device = "auto";  // auto, cpu, cuda, cuda:N
  std::string gpu_memory;       // "16GB"; empty: all that is free

  void add_to(Command& command);
  /// Whether open() gives a GPU, where nothing goes wrong.
  bool on_gpu() const;
  /// The device; `threads` is for the CPU. auto: the first GPU where there is one and the program can use it.
  /// Says on standard error what an opened GPU lacks. Throws Error: kUnsupported for a GPU that this program
  /// or driver can't use, UsageError for flags that are none.
  std::unique_ptr<Device> open(int threads) const;
};

/// The bytes of a --gpu-memory. Throws UsageError.
uint64_t parse_gpu_memory(const std::string& text);

/// Slots for experts in what is left of the device's memory, once `context_tokens` of keys and values and
/// working memory have their part; 0 where the device has no memory of its own (experts are read where they
/// lie). Throws Error kOutOfMemory where it is too little for the fewest slots.
int64_t slots_that_fit(const Device& device, const ModelInfo& info, int64_t context_tokens);

}  // namespace sluice::apps
