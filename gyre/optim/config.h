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
  std::string source = "second";       // second (gradient covariances) | first (the momentum; stores no covariances)
  std::string geometry = "bilateral";  // bilateral (both sides) | unilateral (the smaller side)
  std::string refresh = "fixed";       // fixed | stage-aware | adaptive
  double drift = 0.1;                  // adaptive: refresh when so much of a basis's covariance is off its diagonal
  int64_t refresh_lag = 0;             // updates that a refresh may take in the background; 0: it is made at once
  double covariance_beta = 0;          // decay of the covariances; 0: beta2
  int64_t covariance_every = 1;        // every so many gradients go into the covariances
  std::string long_sides =
      "thin";                 // thin (of a side twice the other or longer, as many directions as that has) | whole
  int64_t max_dimension = 0;  // longer sides stay unrotated, or have a sketch; 0: none do
  int64_t sketch = 0;         // directions rotated of a side longer than max_dimension; 0: none
  bool transport = false;     // turn the second moment with the basis instead of reordering it alone
  double look_ahead = 0;      // share of a side's directions, of least curvature, that weights are ahead along
  // Types of matrix products, fp32 or (of those large enough to be faster so) bf16.
  std::string products = "bf16";             // that turn gradients and directions
  std::string covariance_products = "fp32";  // that add a gradient to the covariances
  std::string iteration_products = "fp32";   // of a refresh: a covariance times a basis
  // all; it makes AdamW pipedream-lr
  int64_t delay_warmup = 0;  // updates over which the discount for a stage's delay fades; 0: there is none
  // the others
  double lambda = 0.04;         // delay-compensated
  double matrix_lr_ratio = 20;  // muon: rate of matrices, in units of the learning rate

  bool operator==(const OptimizerConfig&) const = default;
};

// `specs`: the parameters of the stage under their full names.
// Errors: InputError for an unknown kind (suggests the nearest) or a value out of range, naming key and value.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<ParameterSpec> specs);
std::vector<std::string> optimizer_names();
// InputError for a value out of range.
void check_optimizer(const OptimizerConfig& config);

}  // namespace gyre
