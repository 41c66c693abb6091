// Products on tensor cores from nvfp4.
#include "kernels/cuda/tensor_kernels.cuh"

namespace sluice::cuda {

template struct TensorProducts<WeightFormat::kNvfp4>;

}  // namespace sluice::cuda
