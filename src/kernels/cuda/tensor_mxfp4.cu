// Products on tensor cores from mxfp4.
#include "kernels/cuda/tensor_kernels.cuh"

namespace sluice::cuda {

template struct TensorProducts<WeightFormat::kMxfp4>;

}  // namespace sluice::cuda
