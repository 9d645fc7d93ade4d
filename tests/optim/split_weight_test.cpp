// Weights in halves: nothing is lost, and a step on them is that on whole weights.
#include "gyre/optim/parameter/split_weight.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fixture.h"
#include "gyre/optim/parameter/adam_kernel.h"
#include "gyre/optim/parameter/mixed_kernels.h"

namespace gyre {
namespace {

using namespace testing_support;

SplitWeight zeros(at::IntArrayRef shape) {
  return {at::zeros(shape, at::kBFloat16), at::zeros(shape, at::kShort), at::zeros(shape, at::kBFloat16)};
}

// Updated in place, as where nobody reads the outgoing version.
SplitWeight halves_of(const at::Tensor& whole) {
  SplitWeight weight = zeros(whole.sizes());
  weight.next = weight.version;
  split(whole, weight);
  return weight;
}

// All that fp32 has of some exponents and the last bits that matter: where rounding goes up, down, and to even.
at::Tensor awkward() {
  std::vector<float> values;
  for (const uint32_t high :
       {0x0000u, 0x0001u, 0x0080u, 0x3F80u, 0x3F81u, 0x3FFFu, 0x7F7Fu, 0x8000u, 0xBF81u, 0xFF7Fu}) {
    for (const uint32_t low : {0x0000u, 0x0001u, 0x7FFFu, 0x8001u, 0xFFFFu}) {
      values.push_back(std::bit_cast<float>((high << 16) + low));
    }
  }
  return at::tensor(values);
}

TEST(SplitWeight, ComesBackExactly) {
  at::manual_seed(51);
  for (const at::Tensor& whole : {awkward(), at::randn({33, 7}), at::randn({5}) * 1e-30, at::zeros({0})}) {
    for (const bool fast : {false, true}) {
      SplitWeight weight = zeros(whole.sizes());
      fast ? split(whole, weight) : portable::split(whole, weight);
      EXPECT_TRUE(weight.next.equal(whole.to(at::kBFloat16))) << "the version is the weight rounded";
      weight.version = weight.next;
      EXPECT_TRUE(joined(weight).equal(whole));
      EXPECT_TRUE(portable::joined(weight).equal(whole));
    }
  }
}

// Half way between two bf16 values 17 bits would be needed: one of the two moves by its last bit, once.
TEST(SplitWeight, InTheMiddleMovesByItsLastBit) {
  const float even = std::bit_cast<float>(0x3F808000u), odd = std::bit_cast<float>(0x3F818000u);
  const at::Tensor middle = at::tensor({even, odd, -even, -odd});
  for (const bool fast : {false, true}) {
    SplitWeight weight = zeros({4});
    fast ? split(middle, weight) : portable::split(middle, weight);
    weight.version = weight.next;
    EXPECT_TRUE(weight.version.equal(middle.to(at::kBFloat16)));
    const at::Tensor moved = at::tensor({std::nextafter(even, 0.0f), odd, std::nextafter(-even, 0.0f), -odd});
    EXPECT_TRUE(joined(weight).equal(moved));
    EXPECT_TRUE(joined(halves_of(moved)).equal(moved));
  }
}

TEST(SplitWeight, InfinitiesAndNumbersThatAreNoneStayThat) {
  const float infinity = std::numeric_limits<float>::infinity();
  const at::Tensor whole = at::tensor({infinity, -infinity, std::nanf("")});
  const at::Tensor back = joined(halves_of(whole));
  EXPECT_TRUE(back.narrow(0, 0, 2).equal(whole.narrow(0, 0, 2)));
  EXPECT_TRUE(std::isnan(back[2].item<float>()));
}

// Every optimizer, with its fast paths or without: the same bits, but for weights that moved by their last one.
TEST(SplitWeight, AStepIsThatOfWholeWeights) {
  for (const std::string& kind : optimizer_makers().names()) {
    OptimizerConfig config = config_of(kind);
    if (kind == "basis-rotation") rotation(config).interval = 3;
    const std::vector<ParameterSpec> specs = {matrix("w", 6, 4, true), matrix("e", 5, 4, false)};
    const auto whole = make_optimizer(config, specs), split_one = make_optimizer(config, specs);
    at::manual_seed(52);
    const std::vector<at::Tensor> weights = {at::randn({6, 4}), at::randn({5, 4})};
    std::vector<SplitWeight> halves = {halves_of(weights[0]), halves_of(weights[1])};
    for (int64_t update = 1; update <= 12; ++update) {
      const std::vector<at::Tensor> gradients = {at::randn({6, 4}), at::randn({5, 4})};
      const std::vector<at::Tensor> copies = {gradients[0].clone(), gradients[1].clone()};
      whole->step(weights, gradients, context_of(update, 1e-2, update % 3));
      // In every second update the outgoing version is read, and stays.
      std::vector<at::Tensor> read;
      for (SplitWeight& weight : halves) {
        if (update % 2 == 0) weight.next = at::empty_like(weight.version);
        read.push_back(weight.version.clone());
      }
      split_one->step_split(halves, copies, context_of(update, 1e-2, update % 3));
      for (size_t i = 0; i < halves.size(); ++i) {
        if (update % 2 == 0) {
          EXPECT_TRUE(halves[i].version.equal(read[i])) << kind;
        }
        halves[i].version = halves[i].next;
        EXPECT_TRUE(joined(halves[i]).equal(weights[i])) << kind << ", update " << update;
        EXPECT_TRUE(halves[i].version.equal(weights[i].to(at::kBFloat16))) << kind << ", update " << update;
      }
    }
  }
}

TEST(SplitWeight, KernelsAndTheirPortablePathsAgree) {
  at::manual_seed(53);
  for (const int64_t count : {1, 7, 1000}) {
    for (const AdamFactors& factors : adams_and_nadams()) {
      const at::Tensor whole = at::randn({count}), gradient = at::randn({count});
      const at::Tensor m = at::randn({count}), v = at::rand({count});
      const SplitWeight a = halves_of(whole), b = halves_of(whole), c = halves_of(whole);
      const at::Tensor plain = whole.clone(), plain_m = m.clone(), plain_v = v.clone();
      adamw_step(plain, gradient, plain_m, plain_v, factors, 1e-2, 1e-3, 0.3);
      adamw_step(a, gradient, m.clone(), v.clone(), factors, 1e-2, 1e-3, 0.3);
      portable::adamw_step(b, gradient, m.clone(), v.clone(), factors, 1e-2, 1e-3, 0.3);
      EXPECT_TRUE(joined(a).equal(plain));
      EXPECT_TRUE(at::allclose(joined(b), plain, 1e-5, 1e-6));
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        const at::Tensor x = gradient.to(type), moved = plain.clone();
        subtract_scaled(a, x, 0.3, 0.99);
        subtract_scaled(plain, x, 0.3, 0.99);
        EXPECT_TRUE(joined(a).equal(plain));
        portable::subtract_scaled(c, x, 0.3, 0.99);
      }
      at::Tensor twice = whole.clone();
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        portable::subtract_scaled(twice, gradient.to(type), 0.3, 0.99);
      }
      EXPECT_TRUE(at::allclose(joined(c), twice, 1e-5, 1e-6));
    }
  }
}

TEST(SplitWeight, WithoutAWayOfItsOwnAnOptimizerSeesWholeWeights) {
  class Halve final : public Optimizer {
   public:
    void step(std::span<const at::Tensor> weights, std::span<const at::Tensor>, const UpdateContext&) override {
      for (const at::Tensor& weight : weights) weight.div_(2);
    }
    NamedTensors state() const override { return {}; }
    void load_state(const NamedTensors&) override {}
  };
  at::manual_seed(54);
  const at::Tensor whole = at::randn({3, 5});
  const std::vector<SplitWeight> weights = {halves_of(whole)};
  Halve().step_split(weights, {}, {});
  EXPECT_TRUE(joined(weights[0]).equal(whole / 2));
}

}  // namespace
}  // namespace gyre
