// [optimizer.muon]; optim/muon.h says what it does.
#pragma once

#include "gyre/core/options.h"

namespace gyre {

struct MuonSettings {
  double matrix_lr_ratio = 20;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("matrix_lr_ratio", self.matrix_lr_ratio, between(0, 1e6), "learning rate of matrices divided by lr");
  }
  bool operator==(const MuonSettings&) const = default;
};

}  // namespace gyre
