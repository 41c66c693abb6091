// Virtual ranges use the driver's interface, found at run time: the program also starts where no driver is.
#include "device/cuda/cuda_memory.h"

#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "device/cuda/cuda_check.h"

namespace sluice {
namespace {

// The functions of virtual memory, all of CUDA 10.2.
struct VirtualMemory {
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) free_addresses;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemGetAllocationGranularity) granularity;
};

template <class Function>
void find(const char* name, Function& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  cuda_check(cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found), name);
  if (found != cudaDriverEntryPointSuccess || address == nullptr) {
    throw Error(ErrorCode::kUnsupported, std::string("the NVIDIA driver has no ") + name);
  }
  function = reinterpret_cast<Function>(address);
}

const VirtualMemory& virtual_memory() {
  static const VirtualMemory functions = [] {
    VirtualMemory f{};
    find("cuMemAddressReserve", f.reserve);
    find("cuMemAddressFree", f.free_addresses);
    find("cuMemCreate", f.create);
    find("cuMemRelease", f.release);
    find("cuMemMap", f.map);
    find("cuMemUnmap", f.unmap);
    find("cuMemSetAccess", f.set_access);
    find("cuMemGetAllocationGranularity", f.granularity);
    return f;
  }();
  return functions;
}

// Chunks bound how far device memory exceeds what was asked for, and how many a large pool has.
constexpr size_t kChunkBytes = size_t{16} << 20;

CUmemAllocationProp properties_of(int ordinal) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  return properties;
}

class CudaRange final : public ReservedMemory {
 public:
  CudaRange(int ordinal, std::shared_ptr<CudaMemoryCap> cap, std::shared_ptr<void> addresses, size_t most,
            size_t chunk, std::string purpose)
      : ReservedMemory(std::move(addresses), most, std::move(purpose)),
        ordinal_(ordinal),
        cap_(std::move(cap)),
        chunk_(chunk) {}
  ~CudaRange() override {
    while (!chunks_.empty()) drop_last();
  }

 protected:
  void back(size_t bytes) override {
    const size_t wanted = (bytes + chunk_ - 1) / chunk_, before = chunks_.size();
    try {
      while (chunks_.size() < wanted) add_one();
    } catch (...) {
      while (chunks_.size() > before) drop_last();
      throw;
    }
    while (chunks_.size() > wanted) drop_last();
  }

 private:
  CUdeviceptr address(size_t chunk) const { return reinterpret_cast<CUdeviceptr>(data()) + chunk * chunk_; }

  void add_one() {
    const VirtualMemory& vm = virtual_memory();
    cap_->take(chunk_, purpose());
    const CUmemAllocationProp properties = properties_of(ordinal_);
    CUmemGenericAllocationHandle handle{};
    const CUresult made = vm.create(&handle, chunk_, &properties, 0);
    if (made != CUDA_SUCCESS) cap_->give_back(chunk_);
    cuda_check(made, purpose().c_str());
    const CUdeviceptr at = address(chunks_.size());
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUresult result = vm.map(at, chunk_, 0, handle, 0);
    if (result == CUDA_SUCCESS) {
      result = vm.set_access(at, chunk_, &access, 1);
      if (result != CUDA_SUCCESS) vm.unmap(at, chunk_);
    }
    if (result != CUDA_SUCCESS) {
      vm.release(handle);
      cap_->give_back(chunk_);
    }
    cuda_check(result, purpose().c_str());
    chunks_.push_back(handle);
  }

  void drop_last() {
    const VirtualMemory& vm = virtual_memory();
    vm.unmap(address(chunks_.size() - 1), chunk_);
    vm.release(chunks_.back());
    chunks_.pop_back();
    cap_->give_back(chunk_);
  }

  int ordinal_;
  std::shared_ptr<CudaMemoryCap> cap_;
  size_t chunk_;
  std::vector<CUmemGenericAllocationHandle> chunks_;
};

}  // namespace

void CudaMemoryCap::take(size_t bytes, std::string_view purpose) {
  if (bytes > left_) {
    throw Error(ErrorCode::kOutOfMemory, std::string(purpose) + ": " + format_bytes(bytes) +
                                             " do not fit the " + format_bytes(left_) +
                                             " of device memory that are left");
  }
  left_ -= bytes;
}

Buffer allocate_cuda(std::shared_ptr<CudaMemoryCap> cap, size_t bytes, std::string_view purpose) {
  cap->take(bytes, purpose);
  void* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, bytes);
  if (result != cudaSuccess) cap->give_back(bytes);
  cuda_check(result, (std::string(purpose) + ": " + format_bytes(bytes) + " of device memory").c_str());
  return Buffer(data, bytes, [cap](void* freed, size_t size) {
    cudaFree(freed);
    cap->give_back(size);
  });
}

Buffer allocate_pinned(size_t bytes, std::string_view purpose) {
  void* data = nullptr;
  cuda_check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
             (std::string(purpose) + ": " + format_bytes(bytes) + " of page-locked memory").c_str());
  return Buffer(data, bytes, [](void* freed, size_t) { cudaFreeHost(freed); });
}

std::unique_ptr<ReservedMemory> reserve_cuda(int ordinal, std::shared_ptr<CudaMemoryCap> cap,
                                             size_t most_bytes, std::string purpose) {
  SLUICE_CHECK(most_bytes > 0);
  const VirtualMemory& vm = virtual_memory();
  const CUmemAllocationProp properties = properties_of(ordinal);
  size_t unit = 0;
  cuda_check(vm.granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), purpose.c_str());
  const size_t chunk = (kChunkBytes + unit - 1) / unit * unit;
  const size_t range = (most_bytes + chunk - 1) / chunk * chunk;
  CUdeviceptr base = 0;
  cuda_check(vm.reserve(&base, range, 0, 0, 0), purpose.c_str());
  std::shared_ptr<void> addresses(reinterpret_cast<void*>(base), [range](void* data) {
    virtual_memory().free_addresses(reinterpret_cast<CUdeviceptr>(data), range);
  });
  return std::make_unique<CudaRange>(ordinal, std::move(cap), std::move(addresses), most_bytes, chunk,
                                     std::move(purpose));
}

}  // namespace sluice
