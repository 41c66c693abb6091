// Products on tensor cores from fp8_block.
#include "kernels/cuda/tensor_kernels.cuh"

namespace sluice::cuda {

template struct TensorProducts<WeightFormat::kFp8Block>;

}  // namespace sluice::cuda
