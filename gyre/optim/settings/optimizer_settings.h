// The table [optimizer]: what every optimizer can be told. What one alone understands stands in a table of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/core/options.h"
#include "gyre/optim/settings/optimizer_kind.h"

namespace gyre {

struct OptimizerSettings {
  std::string kind = kUsualOptimizer;
  double lr = 1e-3;
  std::vector<double> betas = {};
  double epsilon = AdamSettings().epsilon;
  double weight_decay = AdamSettings().weight_decay;
  std::string moments = "fp32";
  int64_t warmup = 0;
  std::string decay = "cosine";
  int64_t cooldown = 0;
  std::string cooldown_shape = "linear";
  double floor = 0.1;
  double clip = 1.0;
  std::string clip_scope = "auto";
  int64_t max_skipped = 10;
  int64_t delay_warmup = 0;
  double discrepancy = 0.135;
  double ema_decay = 0;
  KindTables own = KindTables::of(optimizer_kinds());

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("kind", self.kind, one_of(optimizer_kinds().names()), "what makes updates of gradients");
    visit("lr", self.lr, between(0, 1e6), "peak learning rate");
    const std::string betas = "decay of the first and second moments; empty: the optimizer's own, " + betas_of_kinds();
    visit("betas", self.betas, between(0, 1), betas.c_str());
    visit("epsilon", self.epsilon, between(1e-300, 1), "added to the root of the second moment");
    visit("weight_decay", self.weight_decay, between(0, 1e6), "decoupled decay of matrices and embeddings");
    visit(
        "moments", self.moments, one_of({"fp32", "bf16"}),
        "how Adam's two moments are kept between updates; bf16: half the memory, rounded up or down by chance, so that "
        "small changes add up");
    visit("warmup", self.warmup, at_least(0), "updates of linear warm-up");
    visit("decay", self.decay, one_of({"cosine", "linear", "constant", "inverse-sqrt", "wsd"}),
          "course of the learning rate after warm-up; wsd (warm-up, stable, decay): the peak until the cooldown");
    visit("cooldown", self.cooldown, at_least(0),
          "decay = \"wsd\": updates at the end over which the rate falls; 0: a fifth of all");
    visit("cooldown_shape", self.cooldown_shape, one_of({"linear", "cosine", "sqrt"}),
          "decay = \"wsd\": how it falls; sqrt: as 1 - sqrt(share of the cooldown that is over)");
    visit("floor", self.floor, between(0, 1), "least learning rate after warm-up, as a fraction of the peak");
    visit("clip", self.clip, at_least(0), "largest gradient norm; 0 turns clipping off");
    visit("clip_scope", self.clip_scope, one_of({"auto", "global", "stage", "none"}),
          "norm over the model (needs a flush) or over each stage; auto: global where it can be");
    visit("max_skipped", self.max_skipped, at_least(0),
          "updates in a row that a stage may leave out because its gradient is not finite; one more ends the run");
    const std::string delay_warmup =
        "updates over which a stage's learning rate rises from lr / delay to lr; 0: the optimizer's own, " +
        delay_warmup_of_kinds();
    visit("delay_warmup", self.delay_warmup, at_least(0), delay_warmup.c_str());
    visit("discrepancy", self.discrepancy, between(1e-6, 0.999999),
          "weights = \"corrected\": the share of a step still in the moving average after as many updates as the "
          "mismatch");
    visit("ema_decay", self.ema_decay, between(0, 0.9999999),
          "exponential moving average of the weights, kept beside them, evaluated and exported: what stays of it at an "
          "update, as 0.999; 0: there is none");
  }
  bool operator==(const OptimizerSettings&) const = default;
};

// What [optimizer] says of the betas, or, where it says nothing, what its kind takes.
AdamSettings adam_settings(const OptimizerSettings& settings);
// What does not go together; each key as "optimizer.betas" or "optimizer.basis-rotation.refresh_lag".
std::vector<OptionFault> faults_of(const OptimizerSettings& settings);

}  // namespace gyre
