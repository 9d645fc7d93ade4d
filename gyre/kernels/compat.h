// What differs between the libtorch versions that gyre compiles with, from 1.13 on. The only such place.
#pragma once

#include <ATen/ATen.h>

#include <type_traits>

namespace gyre::compat {

// The type of optional tensors in ATen's signatures: c10::optional up to 2.x, std::optional later. Read off a function
// that takes one, so that no version number decides.
template <typename R, typename A, typename B, typename C, typename D, typename E>
std::remove_cvref_t<C> third_parameter(R (*)(A, B, C, D, E));
using OptionalTensor = decltype(third_parameter(&at::native_layer_norm));

inline OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

}  // namespace gyre::compat
