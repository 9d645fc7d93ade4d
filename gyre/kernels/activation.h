// The non-linearities of the MLP.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace gyre {

enum class Activation { Gelu, GeluTanh, Relu };

// "gelu" (exact, by erf), "gelu-tanh" (GPT-2's approximation), "relu". InputError for others.
Activation activation_by_name(const std::string& name);
std::vector<std::string> activation_names();

at::Tensor activate(const at::Tensor& x, Activation activation);
// x is what activate() was given.
at::Tensor activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);

}  // namespace gyre
