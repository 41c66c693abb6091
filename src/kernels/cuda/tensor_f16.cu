// Products on tensor cores from f16.
#include "kernels/cuda/tensor_kernels.cuh"

namespace sluice::cuda {

template struct TensorProducts<WeightFormat::kF16>;

}  // namespace sluice::cuda
