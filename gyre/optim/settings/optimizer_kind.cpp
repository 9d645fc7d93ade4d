#include "gyre/optim/settings/optimizer_kind.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/optim/settings/delay_compensated_settings.h"
#include "gyre/optim/settings/muon_settings.h"
#include "gyre/optim/settings/optimizer_settings.h"

namespace gyre {
namespace {

constexpr double kPipeDreamLrWarmup = 7.0 / 250;  // PipeMare's paper: 7k of 250k updates

// From the update that takes the bases made in the background, if there is one, to the next refresh. Between them are
// updates whose gradient goes into the covariances, and others.
std::vector<AlikeUpdates> period_of(const BasisRotationSettings& settings) {
  const int64_t interval = settings.interval, lag = settings.refresh_lag;
  const int64_t every = std::min(settings.covariance_every, interval);
  const auto takes_in = [&](int64_t update) { return update % every == 0; };
  const int64_t between = interval - 1 - (lag > 0 ? 1 : 0);
  const int64_t covariances = (interval - 1) / every - (lag > 0 && takes_in(lag) ? 1 : 0);
  std::vector<AlikeUpdates> period;
  if (lag > 0) period.push_back({lag, 1});
  if (covariances > 0) period.push_back({every == lag ? 2 * every : every, covariances});
  if (between > covariances) {
    int64_t other = 1;
    while (other == lag || takes_in(other)) ++other;
    period.push_back({other, between - covariances});
  }
  period.push_back({interval, 1});
  return period;
}

}  // namespace

Registry<OptimizerKind>& optimizer_kinds() {
  static Registry<OptimizerKind> kinds(
      "[optimizer] kind",
      {
          {.name = "basis-rotation",
           .meaning = "Adam in the eigenbasis of the gradients' covariances",
           .own = BasisRotationSettings(),
           .betas = {AdamSettings().beta1, 0.99},  // the memory that holds under delay: docs/studies.md
           .period = [](const OptionTable& own) { return period_of(own.get<BasisRotationSettings>()); },
           .faults = [](const OptionTable& own) { return faults_of(own.get<BasisRotationSettings>()); }},
          {.name = "adamw", .meaning = "Adam with decoupled weight decay"},
          {.name = "nesterov-async",
           .meaning = "NAdam, adapted to asynchronous pipelines",
           .betas = {0.99, AdamSettings().beta2}},
          {.name = "pipedream-lr",
           .meaning = "AdamW, with a lower learning rate at first in stages whose gradients are late",
           .delay_warmup = kPipeDreamLrWarmup},
          {.name = "pipemare",
           .meaning = "pipedream-lr, with backwards that read corrected weights",
           .weights = WeightPolicy::Corrected,
           .delay_warmup = kPipeDreamLrWarmup},
          {.name = "prediction",
           .meaning = "AdamW, on weights that are predicted for the time when the gradient arrives",
           .weights = WeightPolicy::Predict},
          {.name = "delay-compensated",
           .meaning =
               "AdamW, on gradients with a first-order correction for how the weights have changed during the delay",
           .own = DelayCompensatedSettings()},
          {.name = "muon", .meaning = "orthogonalised steps for matrices, AdamW for the rest", .own = MuonSettings()},
          {.name = "error-feedback", .meaning = "AdamW, plus the difference between this step and the last"},
      });
  return kinds;
}

std::string betas_of_kinds() {
  std::string text;
  const std::vector<double> usual = {AdamSettings().beta1, AdamSettings().beta2};
  for (const OptimizerKind& kind : optimizer_kinds().all()) {
    if (kind.betas != usual) text += fmt::format("{} [{}, {}], ", kind.name, kind.betas[0], kind.betas[1]);
  }
  return fmt::format("{}the others [{}, {}]", text, usual[0], usual[1]);
}

std::string delay_warmup_of_kinds() {
  std::string text;
  for (const OptimizerKind& kind : optimizer_kinds().all()) {
    if (kind.delay_warmup > 0) text += fmt::format("{} {:.3g}% of the run, ", kind.name, 100 * kind.delay_warmup);
  }
  return text + "the others none";
}

AdamSettings adam_settings(const OptimizerSettings& settings) {
  const std::vector<double>& betas =
      settings.betas.empty() ? optimizer_kinds().at(settings.kind).betas : settings.betas;
  return {betas[0], betas[1], settings.epsilon, settings.weight_decay, settings.moments == "bf16"};
}

bool refreshes_by_delay(const BasisRotationSettings& settings) {
  return settings.refresh == "stage-aware";
}

std::vector<OptionFault> faults_of(const BasisRotationSettings& settings) {
  std::vector<OptionFault> faults;
  if (settings.refresh_lag >= settings.interval) {
    faults.push_back({{"refresh_lag", "interval"},
                      fmt::format("is {}; give less than interval, {}", settings.refresh_lag, settings.interval)});
  }
  if (settings.covariance_every > settings.interval) {
    faults.push_back({{"covariance_every", "interval"},
                      fmt::format("is {}; give interval, {}, or less", settings.covariance_every, settings.interval)});
  }
  if (settings.sketch > 0 && settings.max_dimension == 0) {
    faults.push_back(
        {{"sketch", "max_dimension"},
         fmt::format("is {}; give max_dimension too, the length from which sides are sketched", settings.sketch)});
  }
  return faults;
}

std::vector<OptionFault> faults_of(const OptimizerSettings& settings) {
  std::vector<OptionFault> faults;
  const std::vector<double>& betas = settings.betas;
  if (!betas.empty() && betas.size() != 2) {
    faults.push_back({{"betas"}, fmt::format("has {} numbers; give two, such as [0.9, 0.999], or none", betas.size())});
  }
  if (std::find(betas.begin(), betas.end(), 1.0) != betas.end()) {
    faults.push_back({{"betas"}, "has a 1, with which gradients have no effect; give less"});
  }
  return faults;
}

}  // namespace gyre
