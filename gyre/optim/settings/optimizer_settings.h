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
    visit("kind", self.kind, one_of(optimizer_kinds().names()), "the optimizer");
    visit("lr", self.lr, between(0, 1e6), "peak learning rate");
    const std::string betas =
        "decay rates of the first and second moments; empty: the optimizer's own, " + betas_of_kinds();
    visit("betas", self.betas, between(0, 1), betas.c_str());
    visit("epsilon", self.epsilon, between(1e-37, 1), "added to the square root of the second moment");
    visit("weight_decay", self.weight_decay, between(0, 1e6), "decoupled weight decay, of matrices and embeddings");
    visit("moments", self.moments, one_of({"fp32", "bf16"}),
          "how Adam's two moments are stored between updates. bf16: half the memory, with stochastic rounding, so that "
          "small changes are not lost");
    visit("warmup", self.warmup, at_least(0), "updates of linear warm-up; 0: none");
    visit("decay", self.decay, one_of({"cosine", "linear", "constant", "inverse-sqrt", "wsd"}),
          "how the learning rate falls after warm-up. wsd (warm-up, stable, decay): it stays at the peak until the "
          "cooldown");
    visit("cooldown", self.cooldown, at_least(0),
          "decay = \"wsd\": updates at the end of the run in which the learning rate falls; 0: a fifth of the run");
    visit("cooldown_shape", self.cooldown_shape, one_of({"linear", "cosine", "sqrt"}),
          "decay = \"wsd\": shape of the cooldown; sqrt: 1 - sqrt(fraction of the cooldown that is over)");
    visit("floor", self.floor, between(0, 1), "lowest learning rate after warm-up, as a fraction of the peak");
    visit("clip", self.clip, at_least(0),
          "largest norm of the gradient; a longer gradient is scaled down to it. 0: no clipping");
    visit("clip_scope", self.clip_scope, one_of({"auto", "global", "stage", "none"}),
          "what the norm is taken over: the gradient of the whole model (global, needs a schedule with a flush) or "
          "that of each stage. none: no clipping. auto: global if the schedule allows it, else stage");
    visit("max_skipped", self.max_skipped, at_least(0),
          "updates in a row that a stage may skip because its gradient is not finite; one more ends the run");
    const std::string delay_warmup =
        "updates in which a stage's learning rate rises from lr / delay to lr; 0: the optimizer's own, " +
        delay_warmup_of_kinds();
    visit("delay_warmup", self.delay_warmup, at_least(0), delay_warmup.c_str());
    visit("discrepancy", self.discrepancy, between(1e-6, 0.999999),
          "weights = \"corrected\": fraction of an update that is left in the moving average of updates when as many "
          "updates as the mismatch have followed");
    visit("ema_decay", self.ema_decay, between(0, 0.9999999),
          "decay of an exponential moving average of the weights, for example 0.999; the average is evaluated and "
          "exported too. 0: none");
  }
  bool operator==(const OptimizerSettings&) const = default;
};

// What [optimizer] says of the betas, or, where it says nothing, what its kind takes.
AdamSettings adam_settings(const OptimizerSettings& settings);
// What does not go together; each key as "optimizer.betas" or "optimizer.basis-rotation.refresh_lag".
std::vector<OptionFault> faults_of(const OptimizerSettings& settings);

}  // namespace gyre
