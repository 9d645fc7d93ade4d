// Built without oneDNN: nothing can be done here.
#include "gyre/kernels/onednn/products.h"

namespace gyre::onednn {

at::Tensor linear(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  return {};
}

at::Tensor linear_backward_input(const at::Tensor&, const at::Tensor&) {
  return {};
}

bool linear_backward_weight(const at::Tensor&, const at::Tensor&, at::Tensor&, bool) {
  return false;
}

bool serves_cpu() {
  return false;
}

std::string description() {
  return "libtorch (built without oneDNN)";
}

}  // namespace gyre::onednn
