// Used in the Python package, which leaves all matrix products to PyTorch: every function says "not supported".
#include "gyre/kernels/fp32/product.h"

namespace gyre::fp32 {

at::Tensor linear(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  return {};
}

at::Tensor linear_backward_input(const at::Tensor&, const at::Tensor&) {
  return {};
}

bool linear_backward_weight(const at::Tensor&, const at::Tensor&, at::Tensor&, bool) {
  return false;
}

at::Tensor product(const at::Tensor&, const at::Tensor&) {
  return {};
}

}  // namespace gyre::fp32
