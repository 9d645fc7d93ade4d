#include "gyre/tensors/gradient_sums.h"

#include <ATen/ATen.h>

namespace gyre {

void GradientSums::make(size_t i) const {
  tensors_[i] = at::empty(specs_[i].shape, at::TensorOptions().dtype(at::kFloat).device(device_));
}

}  // namespace gyre
