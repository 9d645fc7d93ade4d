#include "gyre/kernels/activation.h"
#include "gyre/tensors/profile_scope.h"

#include <ATen/ATen.h>

namespace gyre {

at::Tensor activate(const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  switch (activation) {
    case Activation::Gelu:
      return at::gelu(x, "none");
    case Activation::GeluTanh:
      return at::gelu(x, "tanh");
    case Activation::Relu:
      return at::clamp_min(x, 0);
    case Activation::Silu:
      return at::silu(x);
  }
  return {};
}

at::Tensor activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  switch (activation) {
    case Activation::Gelu:
      return at::gelu_backward(grad, x, "none");
    case Activation::GeluTanh:
      return at::gelu_backward(grad, x, "tanh");
    case Activation::Relu:
      return at::threshold_backward(grad, x, 0);
    case Activation::Silu:
      return at::silu_backward(grad, x);
  }
  return {};
}

at::Tensor gated_activate(const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  const int64_t size = x.size(-1) / 2;
  return activate(x.narrow(-1, 0, size), activation).mul_(x.narrow(-1, size, size));
}

at::Tensor gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation) {
  const ProfileScope scope("gyre::activation");
  const int64_t size = x.size(-1) / 2;
  const at::Tensor gate = x.narrow(-1, 0, size), up = x.narrow(-1, size, size);
  at::Tensor result = at::empty(x.sizes(), x.options());
  result.narrow(-1, 0, size).copy_(activate_backward(grad * up, gate, activation));
  result.narrow(-1, size, size).copy_(activate(gate, activation).mul_(grad));
  return result;
}

}  // namespace gyre
