// [optimizer.basis-rotation], Adam in the eigenbasis of the gradients' covariances; optim/parameter/basis_rotation.h
// says what each of these does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/core/options.h"

namespace gyre {

struct BasisRotationSettings {
  int64_t interval = 10;
  std::string source = "second";
  std::string geometry = "bilateral";
  std::string refresh = "fixed";
  double drift = 0.1;
  int64_t refresh_lag = 0;
  double covariance_beta = 0;
  int64_t covariance_every = 1;
  std::string long_sides = "thin";
  int64_t max_dimension = 0;
  int64_t sketch = 0;
  bool transport = false;
  double look_ahead = 0;
  std::string products = "bf16";
  std::string covariance_products = "bf16";
  std::string iteration_products = "fp32";

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("interval", self.interval, at_least(1), "updates between refreshes of the bases");
    visit("source", self.source, one_of({"second", "first"}),
          "what the bases are computed from. second: the covariances of the gradients; first: the momentum");
    visit("geometry", self.geometry, one_of({"bilateral", "unilateral"}),
          "which sides of a matrix are rotated. bilateral: both; unilateral: only the smaller one");
    visit("refresh", self.refresh, one_of({"fixed", "stage-aware", "adaptive"}),
          "when bases are refreshed. fixed: every interval updates; stage-aware: the same on average, but more often "
          "in stages with a long delay; adaptive: when a basis has drifted");
    visit("drift", self.drift, between(1e-9, 1), "refresh = \"adaptive\": drift from which on a basis is refreshed");
    visit(
        "refresh_lag", self.refresh_lag, at_least(0),
        "updates that a refresh may take, on a thread (on a GPU: a stream) beside the workers; 0: the update waits for "
        "it");
    visit("covariance_beta", self.covariance_beta, between(0, 0.999999999),
          "decay rate of the covariances; 0: that of the second moments");
    visit("covariance_every", self.covariance_every, at_least(1), "add only every n-th gradient to the covariances");
    visit("long_sides", self.long_sides, one_of({"thin", "whole"}),
          "how many directions to rotate of a side at least twice as long as the other. thin: as many as the other "
          "side has; whole: all");
    visit("max_dimension", self.max_dimension, at_least(0),
          "longest side that is rotated in full; of a longer side, only a sketch is rotated (see sketch). 0: no limit");
    visit("sketch", self.sketch, at_least(0),
          "number of directions to rotate of a side longer than max_dimension; 0: none, such sides are not rotated");
    visit("transport", self.transport, Range{},
          "at a refresh, rotate the second moment into the new basis; false: only reorder it");
    visit("look_ahead", self.look_ahead, between(0, 1),
          "fraction of the directions of each side, those with the least curvature, in which the weights are predicted "
          "ahead by the delay; these weights are also the ones that are evaluated and saved. 0: none");
    visit("products", self.products, one_of({"fp32", "bf16"}),
          "type of the matrix products that rotate gradients and directions. bf16: only for matrices that are large "
          "enough to gain from it");
    visit("covariance_products", self.covariance_products, one_of({"fp32", "bf16"}),
          "type of the gradients in the matrix products that add them to the covariances; the sums are fp32");
    visit("iteration_products", self.iteration_products, one_of({"fp32", "bf16"}),
          "type of the matrix products of a refresh, covariance times basis");
  }
  bool operator==(const BasisRotationSettings&) const = default;
};

// Whether it must know the mean delay of all stages.
bool refreshes_by_delay(const BasisRotationSettings& settings);
std::vector<OptionFault> faults_of(const BasisRotationSettings& settings);

}  // namespace gyre
