// Opening a GPU, its self-test, and the device's calls.
#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/units.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/cuda_stream.h"

namespace sluice {
namespace {

int node_of(const std::string& pci) {
  std::string path = pci;
  std::transform(path.begin(), path.end(), path.begin(), [](unsigned char c) { return std::tolower(c); });
  int node = -1;
  std::ifstream("/sys/bus/pci/devices/" + path + "/numa_node") >> node;
  return node;
}

// Before the first call of CUDA: a kernel whose code is loaded at its first launch would stall that launch.
void load_modules_eagerly() { ::setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

class CudaDevice final : public Device {
 public:
  CudaDevice(const CudaOptions& options, const CudaDeviceInfo& info)
      : ordinal_(options.ordinal),
        info_(info),
        cap_(std::make_shared<CudaMemoryCap>(
            options.most_bytes > 0 ? std::min(options.most_bytes, info.free_bytes) : info.free_bytes)),
        failure_(std::make_shared<HostFailure>()) {
    cuda_check(cudaDeviceGetStreamPriorityRange(&least_, &greatest_), "stream priorities");
  }

  Backend backend() const override { return Backend::kCuda; }
  bool needs_locked_pages() const override { return true; }
  int numa_node() const override { return info_.numa_node; }

  std::unique_ptr<Event> make_event(std::string) override { return std::make_unique<CudaEvent>(); }
  void wait(const Event& event, std::string_view why) override {
    count_wait(why);
    const auto& source = static_cast<const CudaEvent&>(event);
    if (source.recorded()) cuda_check(cudaEventSynchronize(source.get()), std::string(why).c_str());
    failure_->rethrow();
  }
  void wait(Stream& stream, std::string_view why) override {
    count_wait(why);
    cuda_check(cudaStreamSynchronize(static_cast<CudaStream&>(stream).get()), std::string(why).c_str());
    failure_->rethrow();
  }
  bool done(const Event& event) override {
    const auto& source = static_cast<const CudaEvent&>(event);
    if (!source.recorded()) return true;
    const cudaError_t result = cudaEventQuery(source.get());
    if (result == cudaErrorNotReady) return false;
    cuda_check(result, "asking for an event");
    return true;
  }
  std::optional<size_t> free_bytes() const override {
    size_t free = 0, total = 0;
    cuda_check(cudaMemGetInfo(&free, &total), "free device memory");
    return std::min(free, cap_->left());
  }
  std::optional<double> elapsed_us(const Event& from, const Event& to) const override {
    const auto &first = static_cast<const CudaEvent&>(from), &second = static_cast<const CudaEvent&>(to);
    if (!first.recorded() || !second.recorded()) return std::nullopt;  // never, or inside a graph
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, first.get(), second.get()), "time between events");
    return ms * 1000.0;
  }

  void time_ops(bool on) override { timer_->set(on); }
  std::vector<OpTime> take_op_times() override { return timer_->take(); }

  void set_batches(bool batches) { batches_ = batches; }

 protected:
  Buffer allocate_memory(size_t bytes, std::string_view purpose, MemoryKind kind) override {
    return kind == MemoryKind::kPinned ? allocate_pinned(bytes, purpose)
                                       : allocate_cuda(cap_, bytes, purpose);
  }
  std::unique_ptr<ReservedMemory> reserve_memory(size_t most_bytes, std::string purpose) override {
    return reserve_cuda(ordinal_, cap_, most_bytes, std::move(purpose));
  }
  std::unique_ptr<Stream> new_stream(std::string name, Priority priority) override {
    const int high = greatest_ < least_ ? least_ - 1 : least_;
    const int level = priority == Priority::kNormal ? least_ : priority == Priority::kHigh ? high : greatest_;
    const CudaContext device{nullptr, info_.multiprocessors, info_.major >= 9};
    return std::make_unique<CudaStream>(std::move(name), level, device, batches_, failure_, captures_,
                                        timer_);
  }
  LockResult lock_memory(ByteRange range) override {
    cudaSetDevice(ordinal_);  // may be another thread's first call
    const cudaError_t result = cudaHostRegister(const_cast<void*>(range.begin), range.bytes,
                                                cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (result == cudaSuccess) return {.locked = true, .refusal = {}};
    cudaGetLastError();
    return {.locked = false,
            .refusal = "page-locking " + format_bytes(range.bytes) + " was refused (" +
                       cudaGetErrorString(result) +
                       "); the limit of locked memory may be too low (ulimit -l unlimited)"};
  }
  void unlock_memory(ByteRange range) override {
    if (cudaHostUnregister(const_cast<void*>(range.begin)) != cudaSuccess) cudaGetLastError();
  }

 private:
  int ordinal_, least_ = 0, greatest_ = 0;
  CudaDeviceInfo info_;
  std::shared_ptr<CudaMemoryCap> cap_;
  std::shared_ptr<HostFailure> failure_;
  std::shared_ptr<CaptureState> captures_ = std::make_shared<CaptureState>();
  std::shared_ptr<OpTimer> timer_ = std::make_shared<OpTimer>();
  bool batches_ = false;
};

// Sends a pattern to the device and back, as one copy or as two of a batch; true where the bytes are the
// same. Everything is on one stream: the fill is ordered before the copy that overwrites it.
bool copies_true(Device& device, bool batched) {
  constexpr size_t kHalf = size_t{256} << 10;
  Buffer out = device.allocate(2 * kHalf, "self-test", MemoryKind::kPinned);
  Buffer back = device.allocate(2 * kHalf, "self-test", MemoryKind::kPinned);
  Buffer there = device.allocate(2 * kHalf, "self-test");
  for (size_t i = 0; i < 2 * kHalf; ++i) out.as<uint8_t>()[i] = static_cast<uint8_t>(i * 131 + i / 257);
  std::memset(back.data(), 0, 2 * kHalf);
  const std::unique_ptr<Stream> stream = device.make_stream("self-test", Priority::kNormal);
  const cudaStream_t cuda = static_cast<CudaStream&>(*stream).get();
  cuda_check(cudaMemsetAsync(there.data(), 0xa5, 2 * kHalf, cuda), "self-test");
  const CopyEntry halves[] = {{there.data(), out.data(), kHalf},
                              {there.as<std::byte>() + kHalf, out.as<std::byte>() + kHalf, kHalf}};
  if (batched) {
    CudaStream::copy_batched(cuda, halves);
  } else {
    stream->copy("self-test", there.data(), out.data(), 2 * kHalf);
  }
  stream->copy("self-test", back.data(), there.data(), 2 * kHalf);
  device.wait(*stream, "self-test");
  return std::memcmp(out.data(), back.data(), 2 * kHalf) == 0;
}

bool batches_work(Device& device, std::string* fallback) {
  std::string reason;
  try {
    if (copies_true(device, true)) return true;
    reason = "it changed bytes";
  } catch (const Error& error) {
    reason = error.what();
  }
  if (fallback != nullptr) *fallback = "batched copies are off, each copy is queued by itself: " + reason;
  return false;
}

}  // namespace

int cuda_device_count(std::string* refusal) {
  load_modules_eagerly();
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess) return count;
  cudaGetLastError();
  // The same code stands for no driver at all, which is nothing to speak of, and for one that is too old.
  if (refusal != nullptr && std::filesystem::exists("/proc/driver/nvidia/version")) {
    *refusal = cudaGetErrorString(result);
  }
  return 0;
}

CudaDeviceInfo cuda_device_info(int ordinal) {
  load_modules_eagerly();
  int count = 0;
  cuda_check(cudaGetDeviceCount(&count), "looking for GPUs");
  if (ordinal < 0 || ordinal >= count) {
    throw Error(ErrorCode::kInvalidArgument,
                "GPU " + std::to_string(ordinal) + " is not there: " + std::to_string(count) + " visible");
  }
  cuda_check(cudaSetDevice(ordinal), "opening the GPU");
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, ordinal), "properties of the GPU");
  std::array<char, 32> pci{};
  cuda_check(cudaDeviceGetPCIBusId(pci.data(), pci.size(), ordinal), "PCI address of the GPU");
  CudaDeviceInfo info;
  info.name = properties.name;
  info.major = properties.major;
  info.minor = properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  cuda_check(cudaMemGetInfo(&info.free_bytes, &info.total_bytes), "free device memory");
  info.numa_node = node_of(pci.data());
  info.link = std::string("PCI ") + pci.data();
  if (properties.unifiedAddressing == 0 || properties.canUseHostPointerForRegisteredMem == 0) {
    throw Error(ErrorCode::kUnsupported,
                info.name + ": the driver gives host memory other addresses on the device");
  }
  return info;
}

std::unique_ptr<Device> make_cuda_device(const CudaOptions& options, std::string* fallback) {
  const CudaDeviceInfo info = cuda_device_info(options.ordinal);
  if (info.major < 8) {
    throw Error(ErrorCode::kUnsupported, info.name + ": compute capability " + std::to_string(info.major) +
                                             "." + std::to_string(info.minor) + ", at least 8.0 is needed");
  }
  auto device = std::make_unique<CudaDevice>(options, info);
  if (!copies_true(*device, false)) {
    throw Error(ErrorCode::kIo, info.name + ": bytes changed on the way to the device and back");
  }
  device->set_batches(options.batched_copies && batches_work(*device, fallback));
  return device;
}

}  // namespace sluice
