// Workers on devices with streams, as CUDA's are: on one that the tests make up every use of memory must be in an order
// that streams and events make.
#include <gtest/gtest.h>

#include "gyre/runtime/gradient_chain.h"
#include "runtime/fixture.h"
#include "runtime/made_up_device.h"

namespace gyre {
namespace {

using namespace testing_support;

TEST(Streams, AFaultIsSeen) {
  const at::Device device(made_up::kType, 0);
  const at::Tensor x = at::ones({3}).to(device);
  {
    const StreamScope scope(make_stream(device));
    const at::Tensor y = x + x;
    EXPECT_TRUE(made_up::World::only().take_faults().empty());
    y.mul_(2);
    EXPECT_EQ(y.sum().item<float>(), 12);
    x.add_(1);
  }
  x.mul_(2);
  const auto faults = made_up::World::only().take_faults();
  ASSERT_EQ(faults.size(), 2);
  EXPECT_NE(faults[0].find("may still"), std::string::npos) << faults[0];
}

// Weights on the host.
Outcome run_on(const Experiment& e, int64_t updates) {
  Pipeline pipeline = make_pipeline(e);
  Outcome outcome;
  outcome.report = run_segment(pipeline, e, 0, updates, outcome.recorder);
  for (const auto& [name, tensor] : pipeline.weights())
    outcome.weights[name] = tensor.to(at::kCPU, at::kFloat, false, true);
  return outcome;
}

// The same numbers as on the CPU, but for rounding, and every use of memory in its order.
void expect_ordered(Experiment e, const std::string& what) {
  SCOPED_TRACE(name_of(e) + ", " + what);
  constexpr int64_t kUpdates = 4;
  made_up::World::only().take_faults();
  const Outcome cpu = run_on(e, kUpdates);
  for (const auto& [executor, each] : {std::pair("replay", true), {"threads", false}}) {
    SCOPED_TRACE(each ? "a device each" : "one device");
    e.executor = executor;
    e.device_of = [each = each](int worker) {
      return at::Device(made_up::kType, each ? static_cast<c10::DeviceIndex>(worker % made_up::kDevices) : 0);
    };
    const Outcome made = run_on(e, kUpdates);
    const auto faults = made_up::World::only().take_faults();
    EXPECT_TRUE(faults.empty()) << fmt::format("{}", fmt::join(faults, "\n"));
    ASSERT_EQ(made.recorder.losses.size(), cpu.recorder.losses.size());
    for (const auto& [microbatch, loss] : made.recorder.losses) {
      EXPECT_NEAR(loss, cpu.recorder.losses.at(microbatch), e.compute == at::kFloat ? 1e-3 : 5e-2) << microbatch;
    }
    if (e.compute != at::kFloat) continue;  // weights whose gradient is rounding alone go either way
    for (const auto& [name, weight] : made.weights) {
      EXPECT_LT((weight - cpu.weights.at(name)).abs().max().item<double>(), 2e-3) << name;
    }
  }
}

TEST(Streams, UsesAreOrderedUnderEverySchedule) {
  for (const int replicas : {1, 2}) {
    for (Experiment e : every_kind_replicated(replicas)) {
      if (e.stages > 4 || (e.schedule == "amdp" && e.window != 4) || (replicas == 2 && e.window != 3)) continue;
      e.compute = replicas == 2 ? at::kBFloat16 : at::kFloat;
      expect_ordered(e, "");
    }
  }
}

TEST(Streams, UsesAreOrderedUnderEveryWeightPolicyAndWithTiedWeights) {
  for (const WeightPolicy weights :
       {WeightPolicy::Stash, WeightPolicy::Latest, WeightPolicy::Predict, WeightPolicy::Corrected}) {
    Experiment e = experiment("pipedream", 3, 2);
    e.weights = weights;
    e.tie = true;
    e.recompute = weights == WeightPolicy::Latest;
    e.replicas = weights == WeightPolicy::Stash ? 2 : 1;
    expect_ordered(e, "weight policy " + std::to_string(static_cast<int>(weights)));
  }
  Experiment e = experiment("1f1b", 3, 3);
  e.tie = true;
  e.ema_decay = 0.9;
  e.clip_scope = ClipScope::Global;
  expect_ordered(e, "one norm");
}

TEST(Streams, UsesAreOrderedUnderEveryOptimizer) {
  for (const std::string& optimizer : optimizer_kinds().names()) {
    Experiment e = experiment("pipedream", 2, 1);
    e.optimizer = optimizer;
    e.interval = 2;
    expect_ordered(e, optimizer);
    if (optimizer != "basis-rotation") continue;
    e.refresh_lag = 1;
    expect_ordered(e, "bases made in the background");
  }
}

// Keeps what is sent.
struct Drawer final : Sender {
  explicit Drawer(std::vector<Message>& messages) : messages(messages) {}
  bool has_room() const override { return true; }
  void send(Message message) override { messages.push_back(std::move(message)); }
  std::vector<Message>& messages;
};

TEST(Streams, AGradientsNextUseComesAfterAllOwnersHaveReadTheirShards) {
  const at::Device device(made_up::kType, 0);
  made_up::World::only().take_faults();
  std::vector<ParameterSpec> specs(2);
  for (ParameterSpec& spec : specs) spec.shape = {40};
  std::vector<Message> messages;
  ReplicaLinks links;
  for (int shard = 0; shard < 2; ++shard) links.sums.push_back(std::make_unique<Drawer>(messages));
  GradientChain chain(links, device, flat_elements(specs), kReductionPart, cut_into_shards(specs, 2));
  BufferPool pool(specs, at::kFloat, device);
  {
    const StreamScope replica(make_stream(device));
    WindowGradient gradient;
    gradient.flat = pool.take();
    chain.finish(0, std::move(gradient), 0, true);
  }
  ASSERT_EQ(messages.size(), 2);
  for (Message& message : messages) {
    const StreamScope owner(make_stream(device));
    const auto come = arrived_on(device, std::exchange(message, {}));
    const at::Tensor read = come->tensors[0] + 1;
  }
  const StreamScope replica(make_stream(device));
  pool.take()->flat.zero_();
  const auto faults = made_up::World::only().take_faults();
  EXPECT_TRUE(faults.empty()) << fmt::format("{}", fmt::join(faults, "\n"));
}

}  // namespace
}  // namespace gyre
