#include "gyre/kernels/adam.h"

#include "gyre/kernels/cuda/kernels.h"

namespace gyre::fused {

bool adam(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
          const AdamPass& pass) {
  return cuda::adam(weight, gradient, exp_avg, exp_avg_sq, pass);
}

}  // namespace gyre::fused
