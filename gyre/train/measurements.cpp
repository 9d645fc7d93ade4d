#include "gyre/train/measurements.h"

#include <algorithm>

#include "gyre/tensors/flat_buffer.h"

namespace gyre {

std::vector<int64_t> optimizer_bytes(const Pipeline& pipeline) {
  std::vector<int64_t> bytes_by_stage;
  for (int stage = 0; stage < pipeline.schedule().stages; ++stage) {
    int64_t& bytes = bytes_by_stage.emplace_back(0);
    for (const auto& [name, tensor] : pipeline.optimizer_state(stage)) {
      bytes += static_cast<int64_t>(tensor.nbytes());
    }
  }
  return bytes_by_stage;
}

void RunMeasurements::add(const Segment& segment, const SegmentReport& report, double seconds_before) {
  costs_.resize(report.costs.size());
  sizes_.resize(report.sizes.size());
  for (size_t stage = 0; stage < costs_.size(); ++stage) {
    for (const auto& [kind, cost] : report.costs[stage]) {
      ActionCost& sum = costs_[stage][kind];
      if (sum.count == 0) {
        sum = cost;
        continue;
      }
      // The first action of each segment is left out of the mean, unless it is the only one.
      sum.count += std::max<int64_t>(0, cost.count - 1);
      sum.seconds += cost.seconds;
    }
    sizes_[stage].activation_bytes = std::max(sizes_[stage].activation_bytes, report.sizes[stage].activation_bytes);
    sizes_[stage].output_bytes = std::max(sizes_[stage].output_bytes, report.sizes[stage].output_bytes);
  }
  trace_.resize(report.workers.size());
  // A trace counts from the segment's very beginning, its seconds only from when it has been set up: without the first,
  // a segment's first actions would lie over the last of the one before.
  const double begin = std::max(trace_end_, seconds_before);
  for (size_t worker = 0; worker < trace_.size(); ++worker) {
    for (TimedAction timed : report.workers[worker].trace) {
      timed.action.microbatch += timed.action.is_per_window() ? segment.first_update : segment.first_microbatch;
      timed.start += begin;
      timed.end += begin;
      if (timed.came) *timed.came += begin;
      trace_end_ = std::max(trace_end_, timed.end);
      trace_[worker].push_back(timed);
    }
  }
}

CostModel RunMeasurements::cost_model(const Pipeline& pipeline, const std::vector<int64_t>& optimizer_bytes,
                                      int64_t tokens_per_microbatch) const {
  CostModel model;
  model.tokens_per_microbatch = tokens_per_microbatch;
  if (saves_ > 0) model.checkpoint = save_wait_seconds_ / static_cast<double>(saves_);
  for (size_t stage = 0; stage < costs_.size(); ++stage) {
    const auto mean = [&](ActionKind kind) {
      const auto found = costs_[stage].find(kind);
      return found == costs_[stage].end() ? 0 : found->second.mean();
    };
    const auto parameters = pipeline.plan().stages[stage].parameter_count();
    const RuntimeOptions& options = pipeline.options();
    StageCost cost;
    cost.forward = mean(ActionKind::Forward);
    cost.backward_input = mean(ActionKind::BackwardInput);
    cost.backward_weights = mean(ActionKind::BackwardWeights);
    cost.backward = mean(ActionKind::Backward);
    // A schedule has either whole backwards or their two halves.
    if (cost.backward == 0) cost.backward = cost.backward_input + cost.backward_weights;
    if (cost.backward_input == 0) cost.backward_input = cost.backward_weights = cost.backward / 2;
    cost.update = mean(ActionKind::Update) * pipeline.schedule().shards();  // the measured update is one shard's
    cost.adopt = mean(ActionKind::Adopt);
    cost.output_bytes = sizes_[stage].output_bytes;
    cost.activation_bytes = sizes_[stage].activation_bytes;
    cost.weight_bytes = parameters * static_cast<int64_t>(at::elementSize(options.compute));
    cost.gradient_bytes = parameters * 4;
    const at::Device device = options.device_of(0);
    const int64_t of_forecast =
        pipeline.plan().forecasts[stage].steps > 0 ? forecast_bytes(options.compute, options.weights, device) : 0;
    cost.optimizer_bytes = optimizer_bytes[stage] + parameters * (master_bytes(options.compute, device) + of_forecast);
    model.stages.push_back(cost);
  }
  if (const auto& tied = pipeline.plan().stages.back().tied()) {
    const int64_t elements = flat_elements({&tied->spec, 1});
    model.stages.front().tied_bytes += elements * (pipeline.options().compute == at::kFloat ? 4 : 2);
    model.stages.back().tied_bytes += elements * 4;
  }
  return model;
}

int64_t RunMeasurements::traced_actions() const {
  int64_t actions = 0;
  for (const auto& worker : trace_) actions += static_cast<int64_t>(worker.size());
  return actions;
}

}  // namespace gyre
