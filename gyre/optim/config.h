// Settings of optimizers, and construction by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gyre/optim/optimizer.h"

namespace gyre {

struct OptimizerConfig {
  std::string kind = "basis-rotation";  // one of optimizer_names()
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  // basis rotation
  int64_t frequency = 10;              // updates between refreshes of the bases
  std::string source = "second";       // second (eigenvectors of gradient covariances)
  std::string geometry = "bilateral";  // bilateral (both sides)
  std::string products = "fp32";       // fp32 | bf16: type of the rotations' matrix products
};

// `specs`: the parameters of the stage under their full names.
// Errors: InputError for an unknown kind (suggests the nearest) or a value out of range, naming key and value.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<ParameterSpec> specs);
std::vector<std::string> optimizer_names();

}  // namespace gyre
