// What the stages of a schedule cost, in time and memory, from what the model's layers do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/schedule/schedule.h"
#include "gyre/simulate/cost_model.h"

namespace gyre {

// One layer of the model, measured for one microbatch, in seconds and bytes.
struct LayerProfile {
  std::string name;
  double forward = 0, backward_input = 0, backward_weights = 0;
  double update = 0;
  int64_t input_bytes = 0;  // what a group that begins here keeps with recompute
  int64_t output_bytes = 0;
  int64_t activation_bytes = 0;       // held between forward and backward
  int64_t passing_bytes = 0;          // peak of temporary tensors in its backward, besides activation_bytes
  int64_t weights_passing_bytes = 0;  // of these, when the gradients of its own weights are there too
  int64_t split_bytes = 0;            // held besides between the halves of a split backward
  int64_t weight_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  int64_t late_bytes = 0;      // the optimizer's besides, for each update by which gradients are late
  int64_t forecast_bytes = 0;  // the owner's besides, at a stage whose weights are forecast
  int64_t update_bytes = 0, late_update_bytes = 0;  // only while an update is made; the second if gradients are late
  int64_t tied_bytes = 0;                           // see StageCost
  double backward() const { return backward_input + backward_weights; }
  bool operator==(const LayerProfile&) const = default;
};

// Costs of the schedule's stages, with its policy for weights. The layers are partitioned by the time that they take
// from one update to the next, with `window` microbatches. Errors: InputError for more stages than layers.
CostModel stage_costs(const std::vector<LayerProfile>& layers, const Schedule& schedule, int64_t window, bool recompute,
                      int64_t tokens_per_microbatch);

}  // namespace gyre
