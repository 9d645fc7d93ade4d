#include "gyre/kernels/activation.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {

std::vector<std::string> activation_names() {
  return {"gelu", "gelu-tanh", "relu"};
}

Activation activation_by_name(const std::string& name) {
  if (name == "gelu") return Activation::Gelu;
  if (name == "gelu-tanh") return Activation::GeluTanh;
  if (name == "relu") return Activation::Relu;
  throw InputError(fmt::format("[model] activation = \"{}\" is unknown{}", name, suggestion(name, activation_names())));
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  if (activation == Activation::Relu) return at::relu(x);
  return at::gelu(x, activation == Activation::Gelu ? "none" : "tanh");
}

at::Tensor activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation) {
  if (activation == Activation::Relu) return at::threshold_backward(grad, x, 0);
  return at::gelu_backward(grad, x, activation == Activation::Gelu ? "none" : "tanh");
}

}  // namespace gyre
