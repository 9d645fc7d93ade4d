#include "gyre/kernels/dropout.h"

#include <ATen/ATen.h>

namespace gyre {

at::Tensor dropout_mask(const at::Tensor& x, double probability, const RandomStream& stream) {
  at::Tensor mask = at::empty(x.sizes(), at::TensorOptions().dtype(at::kFloat));
  const auto threshold = static_cast<uint32_t>(probability * 0x1.0p32);
  const auto keep = static_cast<float>(1.0 / (1.0 - probability));
  auto* out = mask.data_ptr<float>();
  for (int64_t i = 0; i < mask.numel(); i += 4) {
    const auto words = stream.block(static_cast<uint32_t>(i / 4));
    for (int64_t j = 0; j < 4 && i + j < mask.numel(); ++j)
      out[i + j] = words[static_cast<size_t>(j)] < threshold ? 0 : keep;
  }
  return mask.to(x.options());
}

}  // namespace gyre
