// Dropout, in place. The mask depends only on (seed, microbatch, layer, site), so it is the same for any partition and
// order of execution, and when a forward is recomputed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

#include "gyre/model/sublayers/context.h"

namespace gyre {

struct DropoutOptions {
  double probability = 0;
  int64_t width = 0;
  uint32_t site = 0;  // which of the layer's dropouts this is: 0 to 3
};

class Dropout {
 public:
  struct Kept {
    at::Tensor mask;  // of the input's shape, in bools; undefined without dropout
    auto members() const { return std::tie(mask); }
  };

  explicit Dropout(const DropoutOptions& options) : options_(options) {}

  void apply(at::Tensor& x, const LayerContext& context, Kept& kept) const;
  at::Tensor backward_input(const at::Tensor& grad, Kept& kept) const;
  double kept_bytes(const MicrobatchShape& shape) const {
    return options_.probability > 0 ? shape.tokens() * static_cast<double>(options_.width) * sizeof(bool) : 0;
  }
  // Of the gradient that backward_input returns, which its argument outlives; the mask is released.
  double passing_bytes(const MicrobatchShape& shape) const {
    if (options_.probability == 0) return 0;
    return shape.tokens() * static_cast<double>(options_.width) * shape.element_bytes - kept_bytes(shape);
  }

 private:
  DropoutOptions options_;
};

}  // namespace gyre
