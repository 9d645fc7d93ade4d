// What the owner of parameters holds for them beside the newest version, known before it is made.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "gyre/config/config.h"
#include "gyre/config/schedule_options.h"
#include "gyre/optim/config.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// In bytes; doubles, since a wrong configuration's sizes fit no integer.
struct OwnerBytes {
  double masters = 0, moments = 0;  // moments: all of the optimizer's state, and the average of weights
  PassingBytes passing;             // of the optimizer
  double forecast = 0;              // more, at a stage whose weights are forecast
  StepBytes step;                   // only while an update is made

  double held() const { return masters + moments + passing.held; }
};

// specs: the own parameters of one layer, of which a stage has several.
OwnerBytes owner_bytes(const Config& config, WeightPolicy weights, at::Device device,
                       const std::vector<ParameterSpec>& specs);

}  // namespace gyre
