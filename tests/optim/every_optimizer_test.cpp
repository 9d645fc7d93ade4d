// What holds for all optimizers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fixture.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(Every, SavedStateContinuesToTheBit) {
  for (const std::string& kind : optimizer_kinds().names()) {
    for (const auto& [source, bf16_moments] : {std::pair("second", false), {"first", false}, {"second", true}}) {
      OptimizerConfig config;
      config.bf16_moments = bf16_moments;
      if (kind == "basis-rotation") {
        const char* geometry = source == std::string("first") ? "unilateral" : "bilateral";
        config.own = BasisRotationSettings{.interval = 4, .source = source, .geometry = geometry};
      }
      config.delay_warmup = 30;
      auto whole = make(kind, matrix("w", 6, 4, true), config);
      at::manual_seed(1);
      std::vector<at::Tensor> gradients;
      for (int t = 0; t < 20; ++t) gradients.push_back(at::randn({6, 4}));
      at::Tensor w = at::ones({6, 4});
      const auto run = [&](Optimizer& optimizer, at::Tensor& weight, int begin, int end) {
        // After a restart there is no delay: the pipeline was empty.
        for (int t = begin; t < end; ++t) step(optimizer, weight, gradients[t], context_of(t + 1, 1e-2, 0));
      };
      run(*whole, w, 0, 11);
      NamedTensors saved;
      for (const auto& [name, tensor] : whole->state()) saved[name] = tensor.clone();
      at::Tensor resumed_w = w.clone();
      auto resumed = make(kind, matrix("w", 6, 4, true), config);
      resumed->load_state(saved);
      run(*whole, w, 11, 20);
      run(*resumed, resumed_w, 11, 20);
      EXPECT_TRUE(w.equal(resumed_w)) << kind;
    }
  }
}

}  // namespace
}  // namespace gyre
