// Products on tensor cores from fp8_row.
#include "kernels/cuda/tensor_kernels.cuh"

namespace sluice::cuda {

template struct TensorProducts<WeightFormat::kFp8Row>;

}  // namespace sluice::cuda
