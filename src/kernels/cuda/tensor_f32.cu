// Products on tensor cores from f32.
#include "kernels/cuda/tensor_kernels.cuh"

namespace sluice::cuda {

template struct TensorProducts<WeightFormat::kF32>;

}  // namespace sluice::cuda
