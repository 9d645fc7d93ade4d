#include "gyre/model/sublayers/dropout.h"

#include <ATen/ATen.h>

#include "gyre/kernels/dropout.h"

namespace gyre {

void Dropout::apply(at::Tensor& x, const LayerContext& context, Kept& kept) const {
  if (!context.training || options_.probability == 0) return;
  const RandomStream stream(context.seed, StreamPurpose::Dropout, static_cast<uint64_t>(context.microbatch),
                            static_cast<uint32_t>(context.layer) * 4 + options_.site);
  kept.mask = dropout_mask(x, options_.probability, stream);
  apply_dropout(x, kept.mask, options_.probability, x);
}

at::Tensor Dropout::backward_input(const at::Tensor& grad, Kept& kept) const {
  if (!kept.mask.defined()) return grad;
  at::Tensor result = at::empty_like(grad);
  apply_dropout(grad, kept.mask, options_.probability, result);
  kept = {};
  return result;
}

}  // namespace gyre
