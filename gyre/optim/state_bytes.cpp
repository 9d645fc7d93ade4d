#include "gyre/optim/state_bytes.h"

namespace gyre {

double optimizer_state_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs) {
  const OptimizerMaker& maker = optimizer_makers().at(config.kind);
  double bytes = 0;
  for (const ParameterSpec& spec : specs) bytes += maker.state_bytes(config, spec);
  return bytes;
}

PassingBytes optimizer_passing_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs) {
  const OptimizerMaker& maker = optimizer_makers().at(config.kind);
  PassingBytes bytes;
  if (maker.passing_bytes == nullptr) return bytes;
  for (const ParameterSpec& spec : specs) bytes += maker.passing_bytes(config, spec);
  return bytes;
}

StepBytes optimizer_step_bytes(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                               const StepSetting& setting) {
  const OptimizerMaker& maker = optimizer_makers().at(config.kind);
  return maker.step_bytes == nullptr ? StepBytes() : maker.step_bytes(config, specs, setting);
}

}  // namespace gyre
