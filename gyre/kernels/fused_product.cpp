#include "gyre/kernels/fused_product.h"

#include <ATen/ATen.h>
#include <torch/version.h>

#include <vector>

namespace gyre::fused {
namespace {

// libtorch's functions are found by their arguments' namespace, so that a version without them is no error.
// Of matrices, or of each of a stack.
template <typename Tensor>
bool multiply(const Tensor& a, const Tensor& b, Tensor& out) {
  if constexpr (requires { mm_out(out, a, b, at::kFloat), bmm_out(out, a, b, at::kFloat); }) {
    a.dim() == 3 ? bmm_out(out, a, b, at::kFloat) : mm_out(out, a, b, at::kFloat);
    return true;
  } else {
    return false;
  }
}
// libtorch 2.8 has the function, but 2.11 is the first whose code is known to take a sum in fp32.
constexpr bool kAdds = TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 211;

template <typename Tensor>
bool add(const Tensor& a, const Tensor& b, Tensor& out) {
  if constexpr (kAdds) addmm_out(out, out, a, b, at::kFloat);
  return kAdds;
}

bool is_served(const at::Tensor& x) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16;
}

}  // namespace

bool product_in_fp32(const at::Tensor& a, const at::Tensor& b, at::Tensor& out, bool adds) {
  if (!is_served(a) || !is_served(b)) return false;
  return adds ? add(a, b, out) : multiply(a, b, out);
}

at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b) {
  if (!is_served(a)) return {};
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.back() = b.size(-1);
  at::Tensor out = at::empty(sizes, a.options().dtype(at::kFloat));
  return product_in_fp32(a, b, out, /*adds=*/false) ? out : at::Tensor();
}

bool adds_in_place() {
  return kAdds;
}

}  // namespace gyre::fused
