#include "gyre/inspect/profile.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "gyre/build/build.h"
#include "gyre/build/model_maker.h"
#include "gyre/build/owner_bytes.h"
#include "gyre/config/schedule_options.h"
#include "gyre/core/timing.h"
#include "gyre/model/stage.h"
#include "gyre/optim/optimizer.h"
#include "gyre/runtime/weight_store.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/flat_buffer.h"
#include "gyre/tensors/thread_count.h"

namespace gyre {
namespace {

constexpr int kRepetitions = 5;
constexpr int kPeriods = 3;  // of updates, the last of which is measured

// Until the device has done it.
template <typename Work>
double seconds_of(at::Device device, Work&& work) {
  DeviceEvent::record(device).wait();
  const auto started = std::chrono::steady_clock::now();
  work();
  DeviceEvent::record(device).wait();
  return seconds_since(started);
}

// Text with as many tokens as a microbatch has. Their values do not matter.
class BlankText final : public BatchSource {
 public:
  BlankText(int64_t sequences, int64_t context) : tokens_(at::zeros({sequences, context}, at::kLong)) {}
  Batch batch(int64_t) const override { return {tokens_, tokens_}; }
  int64_t tokens_per_batch() const override { return tokens_.numel(); }

 private:
  at::Tensor tokens_;
};

// A microbatch of the run's shape. Of a BERT, as many positions are predicted as in training.
Batch blank_batch(const Config& config) {
  auto text = std::make_unique<BlankText>(config.pipeline.microbatch, text_context(config.model));
  return model_batches(config.model, std::move(text), config.run.seed)->batch(0);
}

class LayerProfiler {
 public:
  // `targets`: of the last layer; undefined for the others.
  LayerProfiler(const Config& config, at::Device device, std::shared_ptr<const Layer> layer, int number,
                const at::Tensor& targets)
      : config_(config),
        device_(device),
        stage_({layer}, number),
        compute_(compute_type(config)),
        store_(stage_.parameters(), compute_, device_),
        gradients_(make_flat_buffer(stage_.parameters(), at::kFloat, device_)) {
    store_.restart(0, [&](size_t i) { return initial_value(stage_.parameters()[i], 1); });
    for (size_t i = 0; i < stage_.parameters().size(); ++i) weights_.push_back(store_.master(i).to(compute_));
    sums_ = gradients_.tensors;
    if (const auto& tied = stage_.tied()) {
      weights_ = stage_.with_tied(weights_, initial_value(tied->spec, 1).to(device_, compute_));
      sums_ = stage_.with_tied(sums_, at::zeros(tied->spec.shape, at::TensorOptions(device_)));
      profile_.tied_bytes = flat_elements({&tied->spec, 1}) * 4;
    }
    context_.seed = 1;
    context_.targets = targets;
    context_.loss_in_backward = true;
    context_.keeps_weights = !reads_latest(weight_policy(config, Schedule()));
    profile_.name = layer->name();
    const MicrobatchShape shape{
        static_cast<double>(config.pipeline.microbatch), static_cast<double>(config.model.context),
        static_cast<double>(at::elementSize(compute_)), config.pipeline.accumulate > 1, !has_streams(device_)};
    profile_.passing_bytes = static_cast<int64_t>(layer->passing_bytes(shape));
    profile_.weights_passing_bytes = static_cast<int64_t>(layer->weights_passing_bytes(shape));
    profile_.split_bytes = static_cast<int64_t>(layer->split_bytes(shape));
  }

  // Sets `output` to what the layer makes of `input`.
  LayerProfile run(const at::Tensor& input, at::Tensor& output) {
    std::vector<double> forward, backward_input, backward_weights;
    for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
      StageSaved saved;
      const double f = seconds_of(device_, [&] { output = stage_.forward(weights_, input, context_, saved); });
      profile_.activation_bytes = saved_bytes(saved);
      const at::Tensor grad = context_.targets.defined() ? at::ones({}) : at::full_like(output, 1e-3);
      const double i = seconds_of(device_, [&] { stage_.backward_input(weights_, grad, saved); });
      const double w = seconds_of(device_, [&] { stage_.backward_weights(saved, sums_); });
      if (repetition == 0) continue;  // warms up
      forward.push_back(f);
      backward_input.push_back(i);
      backward_weights.push_back(w);
    }
    profile_.forward = median(forward);
    profile_.backward_input = median(backward_input);
    profile_.backward_weights = median(backward_weights);
    profile_.input_bytes = static_cast<int64_t>(input.nbytes());
    profile_.output_bytes = static_cast<int64_t>(output.nbytes());
    measure_update();
    return profile_;
  }

 private:
  void measure_update() {
    const OptimizerConfig made_with = optimizer_config(config_);
    const auto optimizer = make_optimizer(made_with, stage_.parameters(), device_);
    const OptimizerKind& kind = optimizer_kinds().at(made_with.kind);
    const std::vector<AlikeUpdates> period =
        kind.period == nullptr ? std::vector{AlikeUpdates{1, kRepetitions}} : kind.period(made_with.own);
    // First bases cost more, and may be taken in the next period.
    for (int i = 0; i < kPeriods; ++i) profile_.update = mean_seconds(*optimizer, period);
    const int64_t parameters = stage_.parameter_count();
    profile_.weight_bytes = parameters * static_cast<int64_t>(at::elementSize(compute_));
    profile_.gradient_bytes = parameters * 4;
    const WeightPolicy weights = weight_policy(config_, Schedule());
    const OwnerBytes owner = owner_bytes(config_, weights, device_, stage_.parameters());
    profile_.optimizer_bytes = static_cast<int64_t>(owner.held());
    profile_.late_bytes = static_cast<int64_t>(owner.passing.per_delay);
    profile_.forecast_bytes = static_cast<int64_t>(owner.forecast);
    profile_.update_bytes = static_cast<int64_t>(owner.step.prompt);
    profile_.late_update_bytes = static_cast<int64_t>(owner.step.late);
  }

  // Of an update, over a period. A few of those that are alike stand for all.
  double mean_seconds(Optimizer& optimizer, const std::vector<AlikeUpdates>& period) {
    double sum = 0, updates = 0;
    for (const AlikeUpdates& alike : period) {
      const int64_t made = std::min<int64_t>(alike.count, kRepetitions);
      double seconds = 0;
      for (int64_t i = 0; i < made; ++i) seconds += update_seconds(optimizer, alike.number);
      const auto count = static_cast<double>(alike.count);
      sum += seconds / static_cast<double>(made) * count;
      updates += count;
    }
    return sum / updates;
  }

  double update_seconds(Optimizer& optimizer, int64_t number) {
    for (const at::Tensor& gradient : gradients_.tensors) gradient.normal_(0, 1e-3);
    UpdateContext context;
    context.update = number;
    context.learning_rate = 1e-6;
    optimizer.state();  // bases made in the background are there: in a run, passes come before the update
    return seconds_of(device_, [&] { store_.update(optimizer, gradients_.tensors, /*norm=*/0, context); });
  }

  const Config& config_;
  at::Device device_;
  Stage stage_;
  at::ScalarType compute_;
  WeightStore store_;
  FlatBuffer gradients_;
  std::vector<at::Tensor> weights_, sums_;
  LayerContext context_;
  LayerProfile profile_;
};

// Layers do the same work if their parameters have the same names and shapes and their inputs the same shape. Shapes
// alone do not tell an attention from an MLP: in a Llama those of both can be equal.
using LayerKey = std::pair<std::vector<std::pair<std::string, std::vector<int64_t>>>, std::vector<int64_t>>;
LayerKey key_of(const Layer& layer, const at::Tensor& input) {
  LayerKey key;
  for (const ParameterSpec& spec : layer.parameters()) key.first.emplace_back(spec.name, spec.shape);
  key.second = input.sizes().vec();
  return key;
}

}  // namespace

std::vector<LayerProfile> profile_layers(const Config& config) {
  const c10::NoGradGuard no_grad;
  use_threads(threads_per_worker(config));
  const at::Device device = find_device(run_device(config));
  if (has_streams(device)) use_deterministic_functions();  // as a run does
  const Layers layers = build_layers(config);
  std::vector<LayerProfile> profiles;
  std::map<LayerKey, LayerProfile> known;
  const Batch batch = blank_batch(config);
  at::Tensor input = on_device(batch.inputs, device);
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool is_last = i + 1 == layers.size();
    const LayerKey key = key_of(*layers[i], input);
    const auto found = known.find(key);
    if (found != known.end() && !is_last) {
      profiles.push_back(found->second);
      profiles.back().name = layers[i]->name();
      continue;  // its output has the shape of its input
    }
    at::Tensor output;
    const at::Tensor targets = is_last ? batch.targets : at::Tensor();
    profiles.push_back(LayerProfiler(config, device, layers[i], static_cast<int>(i), targets).run(input, output));
    known[key] = profiles.back();
    input = output;
  }
  profiles.front().tied_bytes =
      profiles.back().tied_bytes / 4 * static_cast<int64_t>(at::elementSize(compute_type(config)));
  return profiles;
}

}  // namespace gyre
