// An update that is left out changes no weight and no state.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "gyre/optim/optimizer.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(Skip, OptimizersGoOnAsIfThereHadBeenNoUpdate) {
  for (const std::string& kind : optimizer_makers().names()) {
    SCOPED_TRACE(kind);
    at::manual_seed(4);
    const std::vector<ParameterSpec> specs = {matrix("w", 6, 4, true), matrix("e", 5, 4, false)};
    const auto skips = make_optimizer(config_of(kind), specs), plain = make_optimizer(config_of(kind), specs);
    const std::vector<at::Tensor> a = {at::randn({6, 4}), at::randn({5, 4})};
    const std::vector<at::Tensor> b = {a[0].clone(), a[1].clone()};
    for (int64_t update = 1; update <= 12; ++update) {
      const std::vector<at::Tensor> gradients = {at::randn({6, 4}), at::randn({5, 4})};
      const std::vector<at::Tensor> copies = {gradients[0].clone(), gradients[1].clone()};
      if (update == 4 || update == 5) {
        skips->skip(a, context_of(update, 1e-2));
      } else {
        skips->step(a, gradients, context_of(update, 1e-2));
        plain->step(b, copies, context_of(update, 1e-2));
      }
      EXPECT_TRUE(a[0].equal(b[0]) && a[1].equal(b[1])) << update;
    }
    const NamedTensors kept = skips->state(), same = plain->state();
    for (const auto& [name, tensor] : kept) EXPECT_TRUE(tensor.equal(same.at(name))) << name;
  }
}

}  // namespace
}  // namespace gyre
