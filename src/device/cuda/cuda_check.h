// Results of the CUDA runtime and driver as errors.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace sluice {

/// Throws Error kOutOfMemory where memory is short, kUnsupported where there is no usable device or driver,
/// else kIo. `what` says what was tried. An error that the context survives is cleared; after any other the
/// message says that the process can't use the device any more.
void cuda_check(cudaError_t result, const char* what);
void cuda_check(CUresult result, const char* what);

}  // namespace sluice
