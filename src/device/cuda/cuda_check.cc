// What CUDA's error codes mean for the user.
#include "device/cuda/cuda_check.h"

#include <string>

#include "base/error.h"

namespace sluice {
namespace {

ErrorCode code_of(cudaError_t result) {
  switch (result) {
    case cudaErrorMemoryAllocation:
      return ErrorCode::kOutOfMemory;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kIo;
  }
}

std::string advice_for(cudaError_t result) {
  switch (result) {
    case cudaErrorNoDevice:
      return "; no NVIDIA GPU is visible (nvidia-smi, CUDA_VISIBLE_DEVICES)";
    case cudaErrorInsufficientDriver:
      return "; the NVIDIA driver is older than CUDA 13 needs (580 or newer)";
    case cudaErrorNoKernelImageForDevice:
      return "; this program was not built for this GPU (SLUICE_CUDA_ARCHITECTURES)";
    default:
      return {};
  }
}

}  // namespace

void cuda_check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::string text =
      std::string(what) + ": " + cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")";
  text += advice_for(result);
  cudaGetLastError();  // clears what can be cleared
  const cudaError_t left = cudaPeekAtLastError();
  if (left != cudaSuccess) text += "; the device can't be used any more by this process";
  throw Error(code_of(result), text);
}

void cuda_check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const bool memory = result == CUDA_ERROR_OUT_OF_MEMORY;
  throw Error(
      memory ? ErrorCode::kOutOfMemory : ErrorCode::kIo,
      std::string(what) + (memory ? ": out of device memory" : ": driver error " + std::to_string(result)));
}

}  // namespace sluice
