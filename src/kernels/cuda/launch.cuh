// Shapes of launches, and sums over a warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "device/stream.h"
#include "kernels/positions.h"

namespace sluice::cuda {

constexpr int kWarp = 32;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>(ceil_div(items, per_block));
}

/// Launches a kernel that may begin while the one before it on the stream ends (from compute capability 9.0
/// on, programmatic dependent launch): it calls wait_for_previous() in every block, before it reads or writes
/// anything that another kernel writes or reads.
/// `shared_bytes`: of dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch_with_shared(const CudaContext& cuda, void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                        size_t shared_bytes, Arguments... arguments) {
  constexpr size_t kAlwaysAllowed = 32 * 1024;  // beside a kernel's static shared memory, of 48 KiB
  if (shared_bytes > kAlwaysAllowed) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = cuda.stream;
  config.attrs = &attribute;
  config.numAttrs = cuda.overlaps_launches ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel,
                     static_cast<Parameters>(arguments)...);  // its error is the caller's last one
}
template <class... Parameters, class... Arguments>
void launch_behind(const CudaContext& cuda, void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                   Arguments... arguments) {
  launch_with_shared(cuda, kernel, grid, threads, 0, arguments...);
}
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
/// The kernel behind this one may begin.
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Positions as a kernel takes them.
struct PositionOf {
  int64_t first;
  const int32_t* of_rows;
  explicit PositionOf(const Positions& positions) : first(positions.first), of_rows(positions.of_rows) {}
  __device__ int64_t operator()(int64_t row) const {
    return of_rows == nullptr ? first + row : static_cast<int64_t>(of_rows[row]);
  }
};

/// The sum of `value` over the warp, in every lane; the order of the additions is fixed.
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

}  // namespace sluice::cuda
