// An update whose gradient is not finite changes nothing.
#include "gyre/optim/finite_step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "fixture.h"
#include "gyre/optim/clipping.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(FiniteStep, LeavesOutWhatIsNotFiniteAlone) {
  for (const std::string& kind : optimizer_makers().names()) {
    at::manual_seed(4);
    const std::vector<ParameterSpec> specs = {matrix("w", 6, 4, true), matrix("e", 5, 4, false)};
    const auto left_out = make_optimizer(config_of(kind), specs), plain = make_optimizer(config_of(kind), specs);
    const std::vector<at::Tensor> a = {at::randn({6, 4}), at::randn({5, 4})};
    const std::vector<at::Tensor> b = {a[0].clone(), a[1].clone()};
    for (int64_t update = 1; update <= 12; ++update) {
      const std::vector<at::Tensor> gradients = {at::randn({6, 4}), at::randn({5, 4})};
      const std::vector<at::Tensor> copies = {gradients[0].clone(), gradients[1].clone()};
      const bool bad = update == 4 || update == 5;
      if (bad) gradients[1][2][3] = std::numeric_limits<float>::infinity();
      const at::Tensor squared = squared_norms(gradients);
      step_if_finite(*left_out, a, gradients, whole_norm({&squared, 1}), context_of(update, 1e-2));
      if (!bad) plain->step(b, copies, context_of(update, 1e-2));
      EXPECT_TRUE(a[0].equal(b[0]) && a[1].equal(b[1])) << kind << ", update " << update;
    }
  }
}

}  // namespace
}  // namespace gyre
