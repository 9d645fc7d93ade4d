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
          "what the bases come from, gradient covariances or the momentum");
    visit("geometry", self.geometry, one_of({"bilateral", "unilateral"}),
          "which sides are rotated, both or the smaller");
    visit("refresh", self.refresh, one_of({"fixed", "stage-aware", "adaptive"}),
          "fixed: every interval; stage-aware: more often where delays are long; adaptive: when the basis has drifted");
    visit("drift", self.drift, between(1e-9, 1), "threshold of adaptive refresh");
    visit("refresh_lag", self.refresh_lag, at_least(0),
          "updates that a refresh may take, on a thread beside the workers; 0: it is made at once");
    visit("covariance_beta", self.covariance_beta, between(0, 0.999999999),
          "decay of the covariances; 0: as that of the second moments");
    visit("covariance_every", self.covariance_every, at_least(1), "add every n-th gradient to the covariances");
    visit(
        "long_sides", self.long_sides, one_of({"thin", "whole"}),
        "sides at least twice as long as the other: rotate as many directions as the other has (thin), or all (whole)");
    visit("max_dimension", self.max_dimension, at_least(0),
          "sides longer than this are not rotated, or only a sketch of them is; 0: no limit");
    visit("sketch", self.sketch, at_least(0), "directions rotated of sides longer than max_dimension; 0: none");
    visit("transport", self.transport, Range{},
          "rotate the second moment with the basis instead of reordering it alone");
    visit("look_ahead", self.look_ahead, between(0, 1),
          "share of each side's directions, those of least curvature, along which weights are moved ahead by the "
          "delay; 0: none");
    visit("products", self.products, one_of({"fp32", "bf16"}),
          "type of the products that rotate gradients and directions; bf16: where large enough to be faster");
    visit("covariance_products", self.covariance_products, one_of({"fp32", "bf16"}),
          "type of the gradients in the products that add them to the covariances; these sum in fp32");
    visit("iteration_products", self.iteration_products, one_of({"fp32", "bf16"}),
          "type of a refresh's products, a covariance times a basis");
  }
  bool operator==(const BasisRotationSettings&) const = default;
};

// Whether it must know the mean delay of all stages.
bool refreshes_by_delay(const BasisRotationSettings& settings);
std::vector<OptionFault> faults_of(const BasisRotationSettings& settings);

}  // namespace gyre
