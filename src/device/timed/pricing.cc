// Bytes by the memory they lie in.
#include "device/timed/pricing.h"

#include <algorithm>

namespace sluice {
namespace {

struct Bytes final : RangeSink {
  explicit Bytes(const MemoryMap& map) : memory(map) {}
  void reads(ByteRange range) override { add(range, to_device); }
  void writes(ByteRange range) override { add(range, to_host); }
  void add(const ByteRange& range, double& over_link) {
    if (range.bytes == 0) return;
    const MemoryBlock* block = memory.find(range.begin);
    const bool on_device = block != nullptr && block->kind == MemoryKind::kDevice;
    (on_device ? device : over_link) += static_cast<double>(range.bytes);
  }

  const MemoryMap& memory;
  double device = 0, to_device = 0, to_host = 0;
};

double us(double amount, double per_s) { return amount / per_s * 1e6; }

bool on_device(const MemoryMap& memory, const void* address) {
  const MemoryBlock* block = memory.find(address);
  return block != nullptr && block->kind == MemoryKind::kDevice;
}

CardJob price_kernel(double flops, const Bytes& bytes, const MachineModel& model) {
  CardJob job;
  const double link_rate = model.link_bytes_per_s * model.gather_share;
  job.link_us = {us(bytes.to_device, link_rate), us(bytes.to_host, link_rate)};
  const double work =
      std::max(us(flops, model.flops_per_s), us(bytes.device, model.memory_bytes_per_s)) / model.share;
  const bool small = work <= model.small_kernel_us;
  job.share = small ? model.small_kernel_share : 1;
  job.compute_us = model.launch_us + work;
  if (small) job.compute_us = std::max(job.compute_us, model.small_kernel_us);
  return job;
}

// Entries between device buffers are the work of a kernel; the first that crosses the link names its
// direction.
CardJob price_copy(const QueuedOp& op, const MemoryMap& memory, const MachineModel& model) {
  Bytes inside(memory);
  CardJob job;
  size_t direction = 0;
  for (const CopyEntry& entry : op.entries) {
    const bool from = on_device(memory, entry.source), to = on_device(memory, entry.target);
    if (from && to) {
      inside.device += 2.0 * static_cast<double>(entry.bytes);
      continue;
    }
    const double plain = us(static_cast<double>(entry.bytes), model.link_bytes_per_s);
    if (!job.is_dma) {
      direction = from ? 1 : 0;
      job.link_us[direction] = model.link_latency_us;
      job.is_dma = true;
    }
    job.link_us[direction] +=
        op.entries.size() == 1 ? plain : std::max(plain + model.link_entry_us, model.link_entry_min_us);
  }
  return job.is_dma ? job : price_kernel(0, inside, model);
}

}  // namespace

CardJob price(const QueuedOp& op, const MemoryMap& memory, const MachineModel& model) {
  if (op.is_copy) return price_copy(op, memory, model);
  Bytes bytes(memory);
  for (const ByteRange& range : op.reads) bytes.reads(range);
  for (const ByteRange& range : op.writes) bytes.writes(range);
  if (op.data_ranges) op.data_ranges(bytes);
  return price_kernel(static_cast<double>(op.flops), bytes, model);
}

}  // namespace sluice
