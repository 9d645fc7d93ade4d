#include "gyre/inspect/late_updates.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>

#include "gyre/optim/settings/basis_rotation_settings.h"

namespace gyre {
namespace {

StageTensors copy_of(std::span<const at::Tensor> tensors) {
  StageTensors copy;
  for (const at::Tensor& tensor : tensors) copy.push_back(tensor.clone());
  return copy;
}

bool looks_ahead(const OptimizerConfig& config) {
  return config.kind == "basis-rotation" && config.own.get<BasisRotationSettings>().look_ahead > 0;
}

// Replaces a stage's optimizer. The pipeline has the weights of some updates ago; this object has the newest, to which
// the stage's own optimizer applies the late gradient.
class LateOptimizer final : public Optimizer {
 public:
  LateOptimizer(std::unique_ptr<Optimizer> optimizer, const LateUpdatesOptions& options, int stage,
                std::vector<ParameterSpec> specs, std::span<const at::Tensor> weights)
      : optimizer_(std::move(optimizer)),
        config_(options.optimizer),
        delay_(options.delays[stage]),
        mean_delay_(options.mean_delays[stage]),
        specs_(std::move(specs)),
        past_{copy_of(weights)} {}

  const StageTensors& current_weights() const { return past_.front(); }
  const StageTensors& late_weights() const { return past_.back(); }
  // The next gradient is taken at the current weights: it is saved, to compare the next update with.
  void expect_current_gradient() { is_current_ = true; }

  void step(std::span<const at::Tensor>, std::span<const at::Tensor> gradients, const UpdateContext& given) override {
    if (std::exchange(is_current_, false)) {
      current_gradient_ = copy_of(gradients);
      return;
    }
    UpdateContext context = given;
    context.delay = static_cast<int64_t>(past_.size()) - 1;
    context.mean_delay = mean_delay_;
    const bool compares = !current_gradient_.empty();
    const StageTensors wanted = compares ? wanted_change(context) : StageTensors();
    StageTensors next = copy_of(current_weights());
    optimizer_->step(next, gradients, context);
    if (compares) compare(change_to(next), wanted);
    past_.push_front(std::move(next));
    if (static_cast<int64_t>(past_.size()) > delay_ + 1) past_.pop_back();
  }
  NamedTensors state() const override { return optimizer_->state(); }
  void load_state(const NamedTensors& state) override { optimizer_->load_state(state); }

  StageComparison comparison() const {
    StageComparison comparison;
    if (compared_ > 0) comparison.cosine = cosines_ / static_cast<double>(compared_);
    if (lengths_ == 0) return comparison;
    double squared = 0;
    for (const at::Tensor& tensor : sum_) squared += tensor.square().sum(at::kDouble).item<double>();
    comparison.oscillation = 1 - std::sqrt(squared) / lengths_;
    return comparison;
  }

 private:
  void compare(const StageTensors& made, const StageTensors& wanted) {
    double dot = 0, made_squared = 0, wanted_squared = 0;
    if (sum_.empty()) {
      for (const at::Tensor& tensor : made) sum_.push_back(at::zeros_like(tensor));
    }
    for (size_t i = 0; i < made.size(); ++i) {
      dot += (made[i] * wanted[i]).sum(at::kDouble).item<double>();
      made_squared += made[i].square().sum(at::kDouble).item<double>();
      wanted_squared += wanted[i].square().sum(at::kDouble).item<double>();
      sum_[i].add_(made[i]);
    }
    if (made_squared == 0 && wanted_squared == 0) return;  // neither has a direction
    cosines_ += dot / std::max(1e-300, std::sqrt(made_squared * wanted_squared));
    lengths_ += std::sqrt(made_squared);
    ++compared_;
  }

  // The change of the weights that the optimizer would make of the current gradient, computed with a copy of it. The
  // copy has only what checkpoints have, and so no past weights, which without a delay are not needed. Weights that are
  // ahead by their delay stay so: coming back would be most of the change.
  StageTensors wanted_change(UpdateContext context) {
    if (!looks_ahead(config_)) context.delay = 0;
    const auto copy = make_optimizer(config_, specs_, current_weights()[0].device());
    copy->load_state(optimizer_->state());
    const StageTensors gradient = std::exchange(current_gradient_, {});
    const StageTensors weights = copy_of(current_weights());
    copy->step(weights, gradient, context);
    return change_to(weights);
  }

  StageTensors change_to(const StageTensors& weights) const {
    StageTensors change;
    for (size_t i = 0; i < weights.size(); ++i) change.push_back(weights[i] - current_weights()[i]);
    return change;
  }

  std::unique_ptr<Optimizer> optimizer_;
  OptimizerConfig config_;
  int64_t delay_;
  MeanDelays mean_delay_;
  std::vector<ParameterSpec> specs_;
  std::deque<StageTensors> past_;  // past_[i]: the weights i updates ago, as far back as the delay goes
  bool is_current_ = false;
  StageTensors current_gradient_;  // to compare the next update with; empty: it is not compared
  StageTensors sum_;               // of the updates compared
  double lengths_ = 0, cosines_ = 0;
  int64_t compared_ = 0;
};

}  // namespace

std::vector<StageComparison> compare_late_updates(WindowPipeline& model, const LateUpdatesOptions& options) {
  std::vector<LateOptimizer*> stages;
  model.replace_optimizers([&](int stage, std::unique_ptr<Optimizer> own) {
    auto late = std::make_unique<LateOptimizer>(std::move(own), options, stage, model.specs(stage),
                                                model.pipeline().owner(stage).weights.masters());
    stages.push_back(late.get());
    return late;
  });
  const int64_t filling = *std::max_element(options.delays.begin(), options.delays.end());
  for (int64_t t = 0; t < filling + options.updates; ++t) {
    const int64_t microbatch = options.first_microbatch + t * options.window;
    const int64_t update = options.first_update + t + 1;
    if (t >= filling) {
      for (size_t stage = 0; stage < stages.size(); ++stage) {
        stages[stage]->expect_current_gradient();
        model.set_weights(static_cast<int>(stage), stages[stage]->current_weights());
      }
      model.run(microbatch, options.window, update);
    }
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      model.set_weights(static_cast<int>(stage), stages[stage]->late_weights());
    }
    model.run(microbatch, options.window, update);
    if (options.progress) options.progress(t + 1, filling + options.updates);
  }
  std::vector<StageComparison> comparisons;
  for (const LateOptimizer* stage : stages) comparisons.push_back(stage->comparison());
  return comparisons;
}

}  // namespace gyre
