// The activations that an MLP can have, and their names in [model] activation.
#pragma once

#include <string>
#include <vector>

namespace gyre {

enum class Activation { Gelu, GeluTanh, Relu, Silu };

// All names: "gelu" (exact, with erf), "gelu-tanh" (GPT-2's approximation), "relu" and "silu".
std::vector<std::string> activation_names();
// Throws InputError for any other name.
Activation activation_by_name(const std::string& name);

}  // namespace gyre
