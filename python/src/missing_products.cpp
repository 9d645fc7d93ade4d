// The package leaves all matrix products to PyTorch: these functions say "not supported".
#include "gyre/kernels/bf16/linear.h"
#include "gyre/kernels/fp32/product.h"

namespace gyre {

at::Tensor bf16::product(const at::Tensor&, const at::Tensor&, at::ScalarType) {
  return {};
}

at::Tensor fp32::product(const at::Tensor&, const at::Tensor&) {
  return {};
}

}  // namespace gyre
