// Used in the Python package, which leaves all matrix products to PyTorch: every function says "not supported".
#include "gyre/kernels/bf16/linear.h"

namespace gyre::bf16 {

at::Tensor linear(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  return {};
}

at::Tensor linear_backward_input(const at::Tensor&, const at::Tensor&) {
  return {};
}

bool linear_backward_weight(const at::Tensor&, const at::Tensor&, at::Tensor&, bool) {
  return false;
}

at::Tensor product(const at::Tensor&, const at::Tensor&, at::ScalarType) {
  return {};
}

}  // namespace gyre::bf16
