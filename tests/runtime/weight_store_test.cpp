// Weight versions: what a reader holds never changes, and buffers are no more than the live versions.
#include "gyre/runtime/weight_store.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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

void update(WeightStore& store, double value) {
  for (const auto& tensor : store.begin_update()) tensor.fill_(value);
  store.finish_update();
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
  const size_t masters = GetParam() == at::kFloat ? 0 : 1;
  for (int i = 0; i < 50; ++i) update(store, i);
  EXPECT_EQ(store.live_buffers(), masters + 1);
  std::vector<WeightReader> readers;
  for (int i = 0; i < 3; ++i) {
    readers.push_back(store.read());
    update(store, 100 + i);
  }
  EXPECT_EQ(store.live_buffers(), masters + 4);
  readers.clear();
  EXPECT_EQ(store.live_buffers(), masters + 1);
  const void* before = store.read()->buffer.flat.data_ptr();
  for (int i = 0; i < 10; ++i) update(store, i);
  if (GetParam() == at::kFloat) {
    EXPECT_EQ(store.read()->buffer.flat.data_ptr(), before);  // nobody reads: updated in place
  }
}

// Whoever updates masters may write the next version too; then nobody copies it. A version that is lent stays.
TEST_P(WeightStoreTest, TheNextVersionMayBeWrittenBesideItsMasters) {
  WeightStore store(specs(), GetParam(), at::kCPU);
  update(store, 1);
  const WeightReader before = store.read();
  const auto masters = store.begin_update();
  const auto next = store.next_version();
  ASSERT_EQ(next.empty(), GetParam() == at::kFloat) << "there the master is the version";
  for (const at::Tensor& master : masters) master.fill_(2);
  for (const at::Tensor& written : next) written.fill_(9);
  store.finish_update(/*version_is_written=*/!next.empty());
  EXPECT_EQ(store.version(), 2);
  EXPECT_EQ(before->buffer.tensors[1].sum().item<double>(), 7);
  EXPECT_EQ(store.masters()[1].sum().item<double>(), 14);
  EXPECT_EQ(store.read()->buffer.tensors[1].sum().item<double>(), next.empty() ? 14 : 63);

  store.begin_update();
  store.next_version();
  store.finish_update();  // it was not written
  EXPECT_EQ(store.read()->buffer.tensors[1].sum().item<double>(), 14);
  WeightStore forecasts(specs(), GetParam(), at::kCPU, {WeightPolicy::Corrected, 2, 0.135});
  EXPECT_TRUE(forecasts.next_version().empty()) << "versions there are no copies of masters";
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
