// [optimizer.muon]; optim/muon.h says what it does.
#pragma once

#include <string>

#include "gyre/core/options.h"

namespace gyre {

struct MuonSettings {
  double matrix_lr_ratio = 20;
  std::string products = "bf16";

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("matrix_lr_ratio", self.matrix_lr_ratio, between(0, 1e6), "learning rate of matrices divided by lr");
    visit(
        "products", self.products, one_of({"fp32", "bf16"}),
        "type of the factors of the matrix products that make a momentum orthogonal; the sums are fp32. bf16: only for "
        "matrices that are large enough to gain from it");
  }
  bool operator==(const MuonSettings&) const = default;
};

}  // namespace gyre
