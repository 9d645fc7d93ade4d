// The tables of the other optimizers that have options of their own; optim/stale.h says what each does.
#pragma once

#include "gyre/core/options.h"

namespace gyre {

struct MuonSettings {
  double matrix_lr_ratio = 20;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("matrix_lr_ratio", self.matrix_lr_ratio, between(0, 1e6), "learning rate of matrices, in units of lr");
  }
  bool operator==(const MuonSettings&) const = default;
};

struct DelayCompensatedSettings {
  double lambda = 0.04;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("lambda", self.lambda, between(0, 1e6), "weight of the compensation");
  }
  bool operator==(const DelayCompensatedSettings&) const = default;
};

}  // namespace gyre
