#include "gyre/build/owner_bytes.h"

#include <algorithm>

#include "gyre/build/build.h"
#include "gyre/optim/state_bytes.h"
#include "gyre/runtime/weight_store.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/shape.h"

namespace gyre {

OwnerBytes owner_bytes(const Config& config, WeightPolicy weights, at::Device device,
                       const std::vector<ParameterSpec>& specs) {
  constexpr double kFloat = 4;
  const at::ScalarType compute = compute_type(config);
  const OptimizerConfig optimizer = optimizer_config(config);
  double parameters = 0, largest = 0;
  for (const ParameterSpec& spec : specs) {
    parameters += numel_as_double(spec.shape);
    largest = std::max(largest, numel_as_double(spec.shape));
  }
  OwnerBytes bytes;
  bytes.masters = parameters * static_cast<double>(master_bytes(compute, device));
  bytes.moments = optimizer_state_bytes(optimizer, specs);
  bytes.passing = optimizer_passing_bytes(optimizer, specs);
  bytes.forecast = parameters * static_cast<double>(forecast_bytes(compute, weights, device));
  StepSetting setting;
  setting.layers = (config.model.layers + config.pipeline.stages - 1) / config.pipeline.stages;
  setting.device = device;
  setting.in_halves = compute == at::kBFloat16 && !has_streams(device);
  bytes.step = optimizer_step_bytes(optimizer, specs, setting);
  if (config.optimizer.ema_decay == 0) return bytes;
  bytes.moments += parameters * kFloat;
  // The average takes in whole weights, one at a time.
  if (setting.in_halves) bytes.step.take_larger({largest * kFloat, largest * kFloat});
  return bytes;
}

}  // namespace gyre
