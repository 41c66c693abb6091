// Choosing the device, and how many slots its memory holds.
#include "apps/device_options.h"

#include <algorithm>
#include <charconv>

#include "apps/arguments.h"
#include "apps/messages.h"
#include "apps/usage_error.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/runtime.h"
#if SLUICE_CUDA
#include "device/cuda/cuda_device.h"
#endif

namespace sluice::apps {
namespace {

constexpr uint64_t kWorkBytes = uint64_t{512} << 20;  // activations, logits, plans, tables

bool has_gpu([[maybe_unused]] std::string* refusal = nullptr) {
#if SLUICE_CUDA
  return cuda_device_count(refusal) > 0;
#else
  return false;
#endif
}

/// The number of the GPU that `device` names; -1 for auto and cpu. Throws UsageError.
int ordinal_of(const std::string& device) {
  if (device == "auto" || device == "cpu") return -1;
  if (device == "cuda") return 0;
  int ordinal = -1;
  const char *begin = device.data() + std::min<size_t>(5, device.size()),
             *end = device.data() + device.size();
  const auto [last, error] = std::from_chars(begin, end, ordinal);
  if (device.rfind("cuda:", 0) != 0 || error != std::errc() || last != end || ordinal < 0) {
    throw UsageError("--device " + device + ": expected auto, cpu, cuda or cuda:N");
  }
  return ordinal;
}

#if SLUICE_CUDA
std::unique_ptr<Device> open_gpu(int ordinal, const std::string& memory) {
  CudaOptions options;
  options.ordinal = ordinal;
  if (!memory.empty()) options.most_bytes = parse_gpu_memory(memory);
  std::string fallback;
  auto device = make_cuda_device(options, &fallback);
  if (!fallback.empty()) print_message(fallback);
  return device;
}
#endif

}  // namespace

void DeviceOptions::add_to(Command& command) {
  command
      .option("--device", device,
              "Where the model runs: cpu, cuda (the first GPU), cuda:N, or auto: a GPU where there is one")
      .accepted_by([](const std::string& text) { ordinal_of(text); })
      .show_default();
  command.option("--gpu-memory", gpu_memory, "Use at most this much of the GPU's memory, such as 16GB")
      .type("BYTES");
}

bool DeviceOptions::on_gpu() const { return device == "auto" ? has_gpu() : device != "cpu"; }

std::unique_ptr<Device> DeviceOptions::open(int threads) const {
  std::string refusal;
  const bool gpu = device == "auto" ? has_gpu(&refusal) : device != "cpu";
  if (!gpu) {
    if (!gpu_memory.empty()) throw UsageError("--gpu-memory: the model does not run on a GPU");
    if (!refusal.empty()) print_message("the GPU can't be used, the model runs on the CPU: " + refusal);
    return make_host_device(threads);
  }
#if SLUICE_CUDA
  return open_gpu(std::max(0, ordinal_of(device)), gpu_memory);
#else
  throw Error(ErrorCode::kUnsupported, "--device " + device +
                                           ": this program was built without CUDA; build the preset cuda: "
                                           "./build.sh cuda");
#endif
}

uint64_t parse_gpu_memory(const std::string& text) {
  const std::optional<uint64_t> bytes = parse_bytes(text);
  if (!bytes || *bytes == 0) throw UsageError("--gpu-memory " + text + ": expected a size such as 16GB");
  return *bytes;
}

int64_t slots_that_fit(const Device& device, const ModelInfo& info, int64_t context_tokens) {
  const std::optional<size_t> free = device.free_bytes();
  const int64_t all = info.experts * static_cast<int64_t>(info.moe_layers.size());
  if (!free || all == 0) return 0;
  const int64_t tokens =
      context_tokens > 0 ? std::min(context_tokens, info.max_positions) : info.max_positions;
  const uint64_t row = (info.expert_bytes + static_cast<uint64_t>(all) - 1) / static_cast<uint64_t>(all);
  const uint64_t taken = static_cast<uint64_t>(info.kv.bytes_per_token() * tokens) + kGroupBytes + kWorkBytes;
  const int64_t least = min_slots(expert_shape(info));
  const int64_t fit = *free > taken ? static_cast<int64_t>((*free - taken) / row) : 0;
  if (fit >= least) return std::min(fit, all);
  throw Error(ErrorCode::kOutOfMemory,
              "the GPU is too small: beside dense weights " + format_bytes(*free) + " are free, " +
                  std::to_string(tokens) + " tokens of context and working memory take " +
                  format_bytes(taken) + ", and " + std::to_string(least) + " slots for experts " +
                  format_bytes(row * static_cast<uint64_t>(least)) + "; a shorter --context takes less");
}

}  // namespace sluice::apps
