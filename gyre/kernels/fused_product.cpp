#include "gyre/kernels/fused_product.h"

#include <ATen/ATen.h>

#include "gyre/tensors/device.h"

namespace gyre::fused {
namespace {

// libtorch's functions are found by their arguments' namespace, so that a version without them is no error.
template <typename Tensor>
bool multiply(const Tensor& a, const Tensor& b, Tensor& out) {
  if constexpr (requires { mm_out(out, a, b, at::kFloat); }) {
    mm_out(out, a, b, at::kFloat);
    return true;
  } else {
    return false;
  }
}
template <typename Tensor>
bool add(const Tensor& a, const Tensor& b, Tensor& out) {
  if constexpr (requires { addmm_out(out, out, a, b, at::kFloat); }) {
    addmm_out(out, out, a, b, at::kFloat);
    return true;
  } else {
    return false;
  }
}

// Some versions that have the function throw if the sum is not bf16 too.
bool can_add() {
  try {
    const at::TensorOptions options = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
    at::Tensor a = at::ones({8, 8}, options), sum = at::ones({8, 8}, options.dtype(at::kFloat));
    return add(a, a, sum);
  } catch (const c10::Error&) {
    return false;
  }
}

bool is_served(const at::Tensor& x) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16;
}

}  // namespace

bool product_in_fp32(const at::Tensor& a, const at::Tensor& b, at::Tensor& out, bool adds) {
  if (!is_served(a) || !is_served(b)) return false;
  return adds ? adds_in_place() && add(a, b, out) : multiply(a, b, out);
}

at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b) {
  if (!is_served(a)) return {};
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options().dtype(at::kFloat));
  return product_in_fp32(a, b, out, /*adds=*/false) ? out : at::Tensor();
}

bool adds_in_place() {
  static const bool adds = device_count(at::kCUDA) > 0 && can_add();
  return adds;
}

}  // namespace gyre::fused
