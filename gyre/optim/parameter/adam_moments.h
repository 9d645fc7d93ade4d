// Adam's moments of one parameter, and AdamW's step with them (Loshchilov and Hutter, 2019).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "gyre/optim/parameter/update_context.h"
#include "gyre/optim/settings/optimizer_kind.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

class AdamMoments {
 public:
  AdamMoments(const ParameterSpec& spec, at::Device device);
  void step(const AdamSettings& config, const at::Tensor& weight, const at::Tensor& gradient,
            const UpdateContext& context);
  void save(NamedTensors& state) const;
  void load(const NamedTensors& state);
  static double state_bytes(const ParameterSpec& spec);

 private:
  std::string name_;
  bool decay_;
  at::Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace gyre
