// The non-linearities of the MLP, plain and gated.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace gyre {

enum class Activation { Gelu, GeluTanh, Relu, Silu };

// "gelu" (exact, by erf), "gelu-tanh" (GPT-2's approximation), "relu". InputError for others.
Activation activation_by_name(const std::string& name);
std::vector<std::string> activation_names();

at::Tensor activate(const at::Tensor& x, Activation activation);
// x is what activate() was given.
at::Tensor activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);

// activation(gate) * up (Shazeer, 2020; with SiLU: SwiGLU). x: (..., 2 n), the gate before what it gates. Returns (...,
// n).
at::Tensor gated_activate(const at::Tensor& x, Activation activation);
// x is what gated_activate() was given. Returns (..., 2 n).
at::Tensor gated_activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);

}  // namespace gyre
