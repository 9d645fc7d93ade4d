// What others need to know of an optimizer before it is made. Free of torch: a run can be planned, simulated and
// checked without it. What makes one is in optim/config.h, under the same name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gyre/core/options.h"
#include "gyre/core/registry.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// Settings of Adam and of the optimizers built on it.
struct AdamSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  bool bf16_moments = false;  // how both are kept between updates; else in fp32
  bool operator==(const AdamSettings&) const = default;
};

inline constexpr const char* kUsualOptimizer = "basis-rotation";

// Updates that cost the same: the number of one of them, and how many a period has.
struct AlikeUpdates {
  int64_t number = 1;
  int64_t count = 1;
};

struct OptimizerKind {
  std::string name;
  std::string meaning;
  OptionTable own = {};                                                      // its own options, at their defaults
  std::vector<double> betas = {AdamSettings().beta1, AdamSettings().beta2};  // where none are given
  std::optional<WeightPolicy> weights = {};  // what it was made for, whatever the schedule
  double delay_warmup = 0;                   // share of the run, where none is given
  // A period, after which the costs of updates repeat, in an order in which its updates can be made one by one. Null:
  // every update costs the same.
  std::vector<AlikeUpdates> (*period)(const OptionTable& own) = nullptr;
  std::vector<OptionFault> (*faults)(const OptionTable& own) =
      nullptr;  // in more than one option; null: there are none
};

// The builtin ones, and what a program has added.
Registry<OptimizerKind>& optimizer_kinds();
// "nesterov-async [0.99, 0.999], the others [0.9, 0.999]".
std::string betas_of_kinds();
// "pipemare 2.8% of the run, the others none".
std::string delay_warmup_of_kinds();

}  // namespace gyre
