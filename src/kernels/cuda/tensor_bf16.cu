// Products on tensor cores from bf16.
#include "kernels/cuda/tensor_kernels.cuh"

namespace sluice::cuda {

template struct TensorProducts<WeightFormat::kBf16>;

}  // namespace sluice::cuda
