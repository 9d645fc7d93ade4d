// [optimizer.delay-compensated]; optim/delay_compensated.h says what it does.
#pragma once

#include "gyre/core/options.h"

namespace gyre {

struct DelayCompensatedSettings {
  double lambda = 0.04;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("lambda", self.lambda, between(0, 1e6), "strength of the correction; 0: none");
  }
  bool operator==(const DelayCompensatedSettings&) const = default;
};

}  // namespace gyre
