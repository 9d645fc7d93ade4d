// The choice of a kernel's path by device and type.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>

namespace gyre::cpu {

// Where x is on the CPU, in fp32 or bf16, `kernel` with its type as template argument; else `portable`.
template <typename Kernel, typename Portable>
auto dispatch(const at::Tensor& x, Kernel&& kernel, Portable&& portable) {
  if (x.is_cpu() && x.scalar_type() == at::kFloat) return kernel.template operator()<float>();
  if (x.is_cpu() && x.scalar_type() == at::kBFloat16) return kernel.template operator()<c10::BFloat16>();
  return portable();
}

}  // namespace gyre::cpu
