// The non-linearities that an MLP can have, and what [model] activation calls them.
#pragma once

#include <string>
#include <vector>

namespace gyre {

enum class Activation { Gelu, GeluTanh, Relu, Silu };

// Of those that a configuration can ask for: "gelu" (exact, by erf), "gelu-tanh" (GPT-2's approximation), "relu".
std::vector<std::string> activation_names();
// InputError for other names.
Activation activation_by_name(const std::string& name);

}  // namespace gyre
