#include "gyre/train/saved_averages.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/optim/weight_average.h"

namespace gyre {

NamedTensors map_averages(const CheckpointReader& checkpoint) {
  const std::string suffix = WeightAverage::state_name("");
  const auto is_average = [&](const std::string& name) { return name.ends_with(suffix); };
  checkpoint.check_presence({Part::Optimizer}, is_average);
  NamedTensors averages;
  for (auto& [name, tensor] : checkpoint.map(Part::Optimizer, is_average)) {
    averages[name.substr(0, name.size() - suffix.size())] = std::move(tensor);
  }
  if (averages.empty()) {
    throw InputError(
        fmt::format("the checkpoint of step {} has no averages of the weights, which only a run with [optimizer] "
                    "ema_decay keeps; leave out --ema",
                    checkpoint.record().step));
  }
  return averages;
}

}  // namespace gyre
