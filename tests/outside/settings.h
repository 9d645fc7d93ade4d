// The options of the optimizer and the model from outside.
#pragma once

#include "gyre/core/options.h"

namespace gyre::outside {

struct SignumSettings {
  double momentum = 0.9;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("momentum", self.momentum, between(0, 1), "decay of the mean whose sign is the step");
  }
  bool operator==(const SignumSettings&) const = default;
};

struct EchoSettings {
  int64_t ratio = 2;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("ratio", self.ratio, between(1, 64), "hidden size of the MLP in widths");
  }
  bool operator==(const EchoSettings&) const = default;
};

}  // namespace gyre::outside
