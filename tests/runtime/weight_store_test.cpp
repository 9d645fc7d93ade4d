// Weight versions: what a reader holds never changes, and there are no more buffers than live versions.
#include "gyre/runtime/weight_store.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace gyre {
namespace {

std::vector<ParameterSpec> specs() {
  ParameterSpec a, b;
  a.name = "a";
  a.shape = {3, 5};
  b.name = "b";
  b.shape = {7};
  return {a, b};
}

// Sets every weight to one value.
class Fill final : public Optimizer {
 public:
  explicit Fill(double value) : value_(value) {}
  void step(std::span<const at::Tensor> weights, std::span<const at::Tensor>, const UpdateContext&) override {
    for (const at::Tensor& weight : weights) weight.fill_(value_);
  }
  NamedTensors state() const override { return {}; }
  void load_state(const NamedTensors&) override {}

 private:
  double value_;
};

void update(WeightStore& store, double value, double norm = 1) {
  Fill optimizer(value);
  store.update(optimizer, {}, norm, {});
}

class WeightStoreTest : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(WeightStoreTest, AReaderKeepsItsVersion) {
  WeightStore store(specs(), GetParam(), at::kCPU);
  update(store, 1);
  const WeightReader first = store.read();
  update(store, 2);
  const WeightReader second = store.read();
  update(store, 3);
  EXPECT_EQ(first->number, 1);
  EXPECT_EQ(second->number, 2);
  EXPECT_EQ(store.read()->number, 3);
  EXPECT_EQ(first->buffer.tensors[0].sum().item<double>(), 15);
  EXPECT_EQ(second->buffer.tensors[1].sum().item<double>(), 14);
  EXPECT_EQ(store.read()->buffer.tensors[1].sum().item<double>(), 21);
  EXPECT_EQ(store.masters()[1].scalar_type(), at::kFloat);
  EXPECT_EQ(store.masters()[1].sum().item<double>(), 21);
}

TEST_P(WeightStoreTest, BuffersAreRecycled) {
  WeightStore store(specs(), GetParam(), at::kCPU);
  for (int i = 0; i < 50; ++i) update(store, i);
  EXPECT_EQ(store.live_buffers(), 1);
  std::vector<WeightReader> readers;
  for (int i = 0; i < 3; ++i) {
    readers.push_back(store.read());
    update(store, 100 + i);
  }
  EXPECT_EQ(store.live_buffers(), 4);
  readers.clear();
  EXPECT_EQ(store.live_buffers(), 1);
  const void* before = store.read()->buffer.flat.data_ptr();
  for (int i = 0; i < 10; ++i) update(store, i);
  EXPECT_EQ(store.read()->buffer.flat.data_ptr(), before) << "nobody reads: updated in place";
}

// The new version equals the old one; a reader's does not change, and no buffer is left behind.
TEST_P(WeightStoreTest, AnUpdateOfNoNumberMakesTheSameVersionAgain) {
  for (const WeightPolicy policy : {WeightPolicy::Stash, WeightPolicy::Corrected}) {
    WeightStore store(specs(), GetParam(), at::kCPU, {policy, policy == WeightPolicy::Stash ? 0 : 2, 0.135});
    update(store, 2);
    const WeightReader before = store.read();
    const size_t live = store.live_buffers();
    update(store, 3, std::numeric_limits<double>::infinity());
    EXPECT_EQ(store.version(), 2);
    EXPECT_EQ(store.read()->number, 2);
    EXPECT_EQ(before->number, 1);
    EXPECT_EQ(store.master(1).sum().item<double>(), 14);
    EXPECT_EQ(store.read()->buffer.tensors[1].sum().item<double>(), 14);
    if (GetParam() == at::kBFloat16 && policy == WeightPolicy::Stash) {
      EXPECT_EQ(store.live_buffers(), live);
    }
    update(store, 4);
    EXPECT_EQ(before->buffer.tensors[1].sum().item<double>(), 14);
    EXPECT_EQ(store.read()->buffer.tensors[1].sum().item<double>(), 28);
  }
}

// A master keeps the bits that its version's bf16 rounds away.
TEST_P(WeightStoreTest, MastersAreExact) {
  at::manual_seed(3);
  const std::vector<at::Tensor> weights = {at::randn({3, 5}), at::randn({7})};
  for (const WeightPolicy policy : {WeightPolicy::Stash, WeightPolicy::Predict}) {
    WeightStore store(specs(), GetParam(), at::kCPU, {policy, policy == WeightPolicy::Stash ? 0 : 2, 0});
    const WeightReader before = store.read();
    store.restart(7, [&](size_t i) { return weights[i]; });
    EXPECT_EQ(store.version(), 7);
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_TRUE(store.master(i).equal(weights[i]));
      EXPECT_TRUE(store.read()->buffer.tensors[i].equal(weights[i].to(GetParam())));
      EXPECT_EQ(before->buffer.tensors[i].any().item<bool>(), false) << "a reader's version stays";
    }
  }
}

TEST_P(WeightStoreTest, AVersionGoesByMessageAndItsMemoryComesBack) {
  WeightStore store(specs(), GetParam(), at::kCPU, {WeightPolicy::Corrected, 2, 0.135});
  update(store, 1);
  update(store, 3);
  const size_t live = store.live_buffers();
  WeightReader here = store.read();
  WeightReader there = to_version(to_message(*here, 7), store.specs());
  update(store, 5);
  EXPECT_EQ(store.live_buffers(), live + 1);
  EXPECT_EQ(there->for_forward().version(), (VersionId{2, false}));
  EXPECT_EQ(there->for_backward().version(), (VersionId{2, true}));
  for (size_t i = 0; i < store.specs().size(); ++i) {
    EXPECT_TRUE(there->for_forward()[i].equal(here->for_forward()[i]));
    EXPECT_TRUE(there->for_backward()[i].equal(here->for_backward()[i]));
    EXPECT_FALSE(there->for_backward()[i].equal(there->for_forward()[i]));
  }
  here.reset();
  EXPECT_EQ(store.live_buffers(), live + 1) << "the replica still reads it";
  there.reset();
  EXPECT_EQ(store.live_buffers(), live);
}

INSTANTIATE_TEST_SUITE_P(Types, WeightStoreTest, ::testing::Values(at::kFloat, at::kBFloat16));

}  // namespace
}  // namespace gyre
