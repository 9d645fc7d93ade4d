// What an optimizer is made with, and construction by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gyre/core/registry.h"
#include "gyre/optim/optimizer.h"
#include "gyre/optim/parameter/passing_bytes.h"
#include "gyre/optim/settings/optimizer_kind.h"

namespace gyre {

struct OptimizerConfig : AdamSettings {
  std::string kind = kUsualOptimizer;  // a name in optimizer_kinds() and optimizer_makers()
  int64_t delay_warmup = 0;            // updates over which the discount for a stage's delay fades; 0: there is none
  OptionTable own = {};                // of the kind; empty: its defaults
  bool operator==(const OptimizerConfig&) const = default;
};

// On what a step is made.
struct StepSetting {
  int64_t layers = 1;  // how many with the same parameters
  at::Device device = at::kCPU;
  bool in_halves = false;  // the weights are (optim/parameter/split_weight.h)
};

// How an optimizer is made, and what it keeps, under the name of its OptimizerKind.
struct OptimizerMaker {
  std::string name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerConfig&, const std::vector<ParameterSpec>&, at::Device);
  // Bytes that it keeps for one parameter; a double, since a wrong configuration's sizes fit no integer.
  double (*state_bytes)(const OptimizerConfig&, const ParameterSpec&);
  // Multiply-adds of an update's matrix products and decompositions for one parameter, the mean of many updates: for
  // balancing stages. 0: it has none. What goes through memory element by element is not counted.
  double (*update_cost)(const OptimizerConfig&, const ParameterSpec&) = nullptr;
  // What it holds for one parameter besides, for a while. Null: nothing.
  PassingBytes (*passing_bytes)(const OptimizerConfig&, const ParameterSpec&) = nullptr;
  // What a step of these parameters holds only while it is made. Null: nothing.
  StepBytes (*step_bytes)(const OptimizerConfig&, const std::vector<ParameterSpec>&, const StepSetting&) = nullptr;

  const char* missing() const { return make == nullptr ? "make" : state_bytes == nullptr ? "state_bytes" : nullptr; }
};
// The builtin ones, and what a program has added.
Registry<OptimizerMaker>& optimizer_makers();

// `specs`: the parameters of the stage under their full names.
// Errors: InputError for an unknown kind (suggests the nearest), a value out of range, naming key and value, or a maker
// that gives null.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs,
                                          at::Device device);
// InputError for a value out of range.
void check_optimizer(const OptimizerConfig& config);

}  // namespace gyre
