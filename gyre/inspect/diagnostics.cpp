#include "gyre/inspect/diagnostics.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <tuple>

#include "gyre/build/batches.h"
#include "gyre/build/build.h"
#include "gyre/core/error.h"
#include "gyre/data/dataset.h"
#include "gyre/optim/clipping.h"
#include "gyre/optim/hessian_norm.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

using Tensors = std::vector<at::Tensor>;

// A matrix of the model, or a row block of one, that a rotation turns.
struct Turned {
  int stage = 0;
  size_t parameter = 0;  // of the stage
  int64_t first_row = 0, rows = 0, columns = 0;
  std::string state_name;
};

constexpr int64_t kBasisMicrobatches = 32;  // of the bases that a run without its own gets
constexpr double kStep = 0.02;              // length of a finite difference's step

class Diagnosis {
 public:
  Diagnosis(const TrainedModel& model, const DiagnosticsOptions& options)
      : model_(model), options_(options), config_(model.config), dataset_(Dataset::open(config_.data.tokens)) {
    config_.run.precision = "fp32";
    check_identity(model.data, dataset_.meta().checksums, dataset_.directory(), {kTrainFile});
    resolve_vocabulary(config_, dataset_.vocabulary());
    pipeline_ = build_pipeline(config_);
    pipeline_->restore(model.checkpoint.weights, model.checkpoint.optimizer, model.checkpoint.step);
    batches_ = train_batches(config_, dataset_);
    window_ = pipeline_->schedule().window;
    next_microbatch_ = model.checkpoint.microbatches;
    find_turned();
  }

  Diagnostics run() {
    result_.step = model_.checkpoint.step;
    for (const Turned& matrix : turned_) result_.parameters += matrix.rows * matrix.columns;
    if (options_.draws > 0) measure_hessian();
    compare_updates();
    return result_;
  }

 private:
  int stages() const { return pipeline_->schedule().stages; }
  const std::vector<ParameterSpec>& specs(int stage) { return pipeline_->owner(stage).layers.parameters(); }

  std::vector<Tensors> current_weights() {
    std::vector<Tensors> weights(stages());
    for (int stage = 0; stage < stages(); ++stage) {
      for (const at::Tensor& master : pipeline_->owner(stage).weights.masters())
        weights[stage].push_back(master.clone());
    }
    return weights;
  }

  // The mean gradient over microbatches [first, first + count) at `weights` [stage].
  std::vector<FlatBuffer> gradient(const std::vector<Tensors>& weights, int64_t first, int64_t count) {
    std::vector<FlatBuffer> gradients;
    for (int stage = 0; stage < stages(); ++stage) {
      gradients.push_back(make_flat_buffer(specs(stage), at::kFloat, at::kCPU));
    }
    for (int64_t microbatch = first; microbatch < first + count; ++microbatch) {
      Batch batch = batches_->batch(microbatch);
      LayerContext context;
      context.seed = pipeline_->options().seed;
      context.microbatch = microbatch;
      context.targets = batch.targets;
      std::vector<StageSaved> saved(stages());
      at::Tensor x = batch.inputs;
      for (int stage = 0; stage < stages(); ++stage) {
        x = pipeline_->owner(stage).layers.forward(weights[stage], x, context, saved[stage]);
      }
      at::Tensor grad = at::scalar_tensor(1.0 / static_cast<double>(count));
      for (int stage = stages() - 1; stage >= 0; --stage) {
        grad = pipeline_->owner(stage).layers.backward(weights[stage], grad, saved[stage], gradients[stage].tensors);
      }
    }
    return gradients;
  }

  void find_turned() {
    for (int stage = 0; stage < stages(); ++stage) {
      for (size_t i = 0; i < specs(stage).size(); ++i) {
        const ParameterSpec& spec = specs(stage)[i];
        if (!spec.rotate || spec.shape.size() != 2) continue;
        const int64_t rows = spec.shape[0] / spec.row_blocks;
        for (int block = 0; block < spec.row_blocks; ++block) {
          turned_.push_back({stage, i, block * rows, rows, spec.shape[1],
                             spec.row_blocks == 1 ? spec.name : fmt::format("{}[{}]", spec.name, block)});
        }
      }
    }
  }

  at::Tensor part(const std::vector<Tensors>& tensors, const Turned& of) const {
    return tensors[of.stage][of.parameter].narrow(0, of.first_row, of.rows);
  }

  // H x by a central difference of gradients, (g(W + h x) - g(W - h x)) / 2h.
  Tensors hessian_product(const Tensors& x) {
    double squared = 0;
    for (const at::Tensor& block : x) squared += block.square().sum(at::kDouble).item<double>();
    const double h = kStep / std::sqrt(squared);
    Tensors result;
    for (const double sign : {1.0, -1.0}) {
      auto weights = current_weights();
      for (size_t i = 0; i < turned_.size(); ++i) part(weights, turned_[i]).add_(x[i], sign * h);
      auto gradients = gradient(weights, next_microbatch_, options_.microbatches);
      std::vector<Tensors> tensors;
      for (FlatBuffer& buffer : gradients) tensors.push_back(std::move(buffer.tensors));
      for (size_t i = 0; i < turned_.size(); ++i) {
        if (sign > 0) {
          result.push_back(part(tensors, turned_[i]).clone());
        } else {
          result[i].sub_(part(tensors, turned_[i])).div_(2 * h);
        }
      }
    }
    return result;
  }

  void measure_hessian() {
    std::vector<HessianBlock> own, rotated;
    for (const Turned& matrix : turned_) own.push_back({matrix.rows, matrix.columns, {}, {}});
    rotated = own;
    result_.own_bases = take_own_bases(rotated);
    if (!result_.own_bases) estimate_bases(rotated);
    const auto product = [this](const Tensors& x) { return hessian_product(x); };
    const auto seed = static_cast<uint64_t>(config_.run.seed);
    result_.hessian_norm = gyre::hessian_norm(own, product, options_.draws, seed);
    result_.rotated_norm = gyre::hessian_norm(rotated, product, options_.draws, seed);
  }

  // The optimizer's, where there are any. A sketch is completed by directions across it.
  bool take_own_bases(std::vector<HessianBlock>& blocks) const {
    bool any = false;
    for (size_t i = 0; i < turned_.size(); ++i) {
      const auto side = [&](const char* which) {
        const auto found = model_.checkpoint.optimizer.find(turned_[i].state_name + which);
        if (found == model_.checkpoint.optimizer.end()) return at::Tensor();
        const at::Tensor& basis = found->second;
        if (!basis.any().item<bool>()) return at::Tensor();
        return basis.size(0) == basis.size(1) ? basis : std::get<0>(at::linalg_qr(basis, "complete"));
      };
      blocks[i].u = side("/left_basis");
      blocks[i].v = side("/right_basis");
      any |= blocks[i].u.defined() || blocks[i].v.defined();
    }
    return any;
  }

  // Eigenvectors of G G^T and G^T G, summed over fresh microbatches.
  void estimate_bases(std::vector<HessianBlock>& blocks) {
    std::vector<std::pair<at::Tensor, at::Tensor>> covariances;
    for (const Turned& matrix : turned_) {
      covariances.emplace_back(at::zeros({matrix.rows, matrix.rows}), at::zeros({matrix.columns, matrix.columns}));
    }
    const auto weights = current_weights();
    for (int64_t m = 0; m < kBasisMicrobatches; ++m) {
      auto gradients = gradient(weights, next_microbatch_ + options_.microbatches + m, 1);
      std::vector<Tensors> tensors;
      for (FlatBuffer& buffer : gradients) tensors.push_back(std::move(buffer.tensors));
      for (size_t i = 0; i < turned_.size(); ++i) {
        const at::Tensor g = part(tensors, turned_[i]);
        covariances[i].first.addmm_(g, g.t());
        covariances[i].second.addmm_(g.t(), g);
      }
    }
    const auto basis = [](const at::Tensor& c) {
      const double trace = c.trace().item<double>();
      return trace > 0 ? std::get<1>(at::linalg_eigh(c / trace)) : at::Tensor();
    };
    for (size_t i = 0; i < turned_.size(); ++i) {
      blocks[i].u = basis(covariances[i].first);
      blocks[i].v = basis(covariances[i].second);
    }
  }

  // Clips gradients [stage] as the run does.
  void clip(const std::vector<FlatBuffer>& gradients) const {
    const RuntimeOptions& run = pipeline_->options();
    if (run.clip_scope == ClipScope::None) return;
    std::vector<std::vector<double>> norms;
    std::vector<double> all;
    for (const FlatBuffer& gradient : gradients) {
      norms.push_back(squared_norms(gradient.tensors));
      all.insert(all.end(), norms.back().begin(), norms.back().end());
    }
    for (size_t stage = 0; stage < gradients.size(); ++stage) {
      const double squared = combine(run.clip_scope == ClipScope::Global ? all : norms[stage]);
      const double factor = clip_factor(std::sqrt(squared), run.clip);
      if (factor < 1) scale(gradients[stage].tensors, factor);
    }
  }

  // The change of one stage's weights that its optimizer makes of `gradient`, by a copy of the optimizer.
  Tensors change(int stage, const Tensors& weights, const FlatBuffer& gradient, int64_t update, int64_t delay) {
    StageOwner& owner = pipeline_->owner(stage);
    const auto optimizer = make_optimizer(optimizer_config(config_), specs(stage));
    optimizer->load_state(owner.optimizer->state());
    Tensors next;
    for (const at::Tensor& weight : weights) next.push_back(weight.clone());
    step(*optimizer, stage, next, gradient, update, delay);
    for (size_t i = 0; i < next.size(); ++i) next[i].sub_(weights[i]);
    return next;
  }

  void step(Optimizer& optimizer, int stage, Tensors& weights, const FlatBuffer& gradient, int64_t update,
            int64_t delay) {
    Tensors scratch;  // for the optimizer
    for (const at::Tensor& tensor : gradient.tensors) scratch.push_back(tensor.clone());
    UpdateContext context;
    context.update = update;
    context.delay = delay;
    context.mean_delay = pipeline_->owner(stage).mean_delay;
    context.learning_rate = pipeline_->options().learning_rate(update);
    optimizer.step(weights, scratch, context);
  }

  // Training goes on from the checkpoint with a ring of old weights; once all delays are what they will be, each update
  // is compared with the one that current weights' gradient would have made.
  void compare_updates() {
    const std::vector<int64_t> delays = longest_delays(pipeline_->schedule()).delay;
    const int64_t filling = *std::max_element(delays.begin(), delays.end());
    std::deque<std::vector<Tensors>> past = {current_weights()};  // past[i]: i updates ago
    std::vector<Tensors> sum(stages());
    std::vector<double> lengths(stages()), cosines(stages());
    for (int64_t t = 0; t < filling + options_.updates; ++t) {
      const bool compared = t >= filling;
      const int64_t microbatch = next_microbatch_ + t * window_;
      std::vector<Tensors> read;
      for (int stage = 0; stage < stages(); ++stage) read.push_back(past[std::min(t, delays[stage])][stage]);
      const auto late = gradient(read, microbatch, window_);
      const auto fresh = compared ? gradient(past[0], microbatch, window_) : std::vector<FlatBuffer>();
      clip(late);
      clip(fresh);
      std::vector<Tensors> next(stages());
      for (int stage = 0; stage < stages(); ++stage) {
        const Tensors& now = past[0][stage];
        const int64_t update = model_.checkpoint.step + t + 1;
        const int64_t delay = std::min(t, delays[stage]);
        if (compared) {
          const Tensors made = change(stage, now, late[stage], update, delay);
          const Tensors wanted = change(stage, now, fresh[stage], update, 0);
          double dot = 0, made_squared = 0, wanted_squared = 0;
          if (sum[stage].empty()) {
            for (const at::Tensor& tensor : made) sum[stage].push_back(at::zeros_like(tensor));
          }
          for (size_t i = 0; i < made.size(); ++i) {
            dot += (made[i] * wanted[i]).sum(at::kDouble).item<double>();
            made_squared += made[i].square().sum(at::kDouble).item<double>();
            wanted_squared += wanted[i].square().sum(at::kDouble).item<double>();
            sum[stage][i].add_(made[i]);
          }
          cosines[stage] += dot / std::max(1e-300, std::sqrt(made_squared * wanted_squared));
          lengths[stage] += std::sqrt(made_squared);
        }
        for (const at::Tensor& weight : now) next[stage].push_back(weight.clone());
        step(*pipeline_->owner(stage).optimizer, stage, next[stage], late[stage], update, delay);
      }
      past.push_front(std::move(next));
      if (static_cast<int64_t>(past.size()) > filling + 1) past.pop_back();
    }
    for (int stage = 0; stage < stages(); ++stage) {
      double squared = 0;
      for (const at::Tensor& tensor : sum[stage]) squared += tensor.square().sum(at::kDouble).item<double>();
      result_.stages.push_back({delays[stage], cosines[stage] / static_cast<double>(options_.updates),
                                1 - std::sqrt(squared) / std::max(1e-300, lengths[stage])});
    }
  }

  const TrainedModel& model_;
  const DiagnosticsOptions& options_;
  Config config_;
  Dataset dataset_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<BatchSource> batches_;
  int64_t window_ = 1, next_microbatch_ = 0;
  std::vector<Turned> turned_;
  Diagnostics result_;
};

}  // namespace

Diagnostics diagnose(const TrainedModel& model, const DiagnosticsOptions& options) {
  return Diagnosis(model, options).run();
}

std::string to_json(const Diagnostics& d) {
  nlohmann::ordered_json json = {{"step", d.step},
                                 {"parameters", d.parameters},
                                 {"hessian_norm", d.hessian_norm},
                                 {"rotated_norm", d.rotated_norm},
                                 {"own_bases", d.own_bases},
                                 {"stages", nlohmann::ordered_json::array()}};
  for (const StageDiagnostics& stage : d.stages) {
    json["stages"].push_back({{"delay", stage.delay}, {"cosine", stage.cosine}, {"oscillation", stage.oscillation}});
  }
  return json.dump();
}

}  // namespace gyre
