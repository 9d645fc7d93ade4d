// Workers on devices with streams, such as CUDA's. On a made-up device, every use of memory must be ordered by streams
// and events.
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <thread>

#include "gyre/core/error.h"
#include "gyre/core/timing.h"
#include "gyre/optim/parameter/fused_adamw.h"
#include "gyre/runtime/actions_ahead.h"
#include "gyre/runtime/evaluate.h"
#include "gyre/runtime/gradient_chain.h"
#include "gyre/runtime/processes_executor.h"
#include "gyre/runtime/weight_store.h"
#include "runtime/fixture.h"
#include "runtime/made_up_device.h"
#include "runtime/tiny_models.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;

// Runs two segments with an evaluation between them; the weights returned are on the host.
Outcome run_on(Pipeline& pipeline, Executor& executor, int64_t updates) {
  Outcome outcome;
  const SyntheticBatches batches = tiny_batches();
  outcome.report = run_segment(pipeline, executor, 0, updates, outcome.recorder);
  const auto weights = pipeline.options().ema_decay > 0 ? ModelWeights::Ema : ModelWeights::Trained;
  outcome.recorder.losses[-1] = evaluate(pipeline, executor, batches, 2, updates, weights);
  run_segment(pipeline, executor, updates, 1, outcome.recorder);
  for (const auto& [name, tensor] : pipeline.weights()) {
    outcome.weights[name] = tensor.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  }
  return outcome;
}
Outcome run_on(const Experiment& e, int64_t updates) {
  Pipeline pipeline = make_pipeline(e);
  return run_on(pipeline, *make_executor(e.executor), updates);
}

at::Device device(int number) {
  return {made_up::kType, static_cast<c10::DeviceIndex>(number % made_up::kDevices)};
}

void expect_no_faults() {
  const auto faults = made_up::World::only().take_faults();
  EXPECT_TRUE(faults.empty()) << fmt::format("{}", fmt::join(faults, "\n"));
}

void expect_near(const Outcome& made, const Outcome& cpu, at::ScalarType compute) {
  ASSERT_EQ(made.recorder.losses.size(), cpu.recorder.losses.size());
  for (const auto& [microbatch, loss] : made.recorder.losses) {
    EXPECT_NEAR(loss, cpu.recorder.losses.at(microbatch), compute == at::kFloat ? 1e-3 : 5e-2) << microbatch;
  }
  if (compute != at::kFloat) return;  // weights whose gradient is only rounding may move either way
  for (const auto& [name, weight] : made.weights) {
    EXPECT_LT((weight - cpu.weights.at(name)).abs().max().item<double>(), 2e-3) << name;
  }
}

TEST(Streams, AFaultIsSeen) {
  const at::Tensor x = at::ones({3}).to(device(0));
  {
    const StreamScope scope(make_stream(device(0)));
    const at::Tensor y = x + x;
    EXPECT_TRUE(made_up::World::only().take_faults().empty());
    y.mul_(2);
    EXPECT_EQ(y.sum().item<float>(), 12);
    x.add_(1);
  }
  x.mul_(2);
  const auto faults = made_up::World::only().take_faults();
  ASSERT_FALSE(faults.empty());
  EXPECT_NE(faults[0].find("may still"), std::string::npos) << faults[0];
}

TEST(Streams, ACopyToTheHostIsAskedForWhenTheTensorIsThere) {
  const at::Tensor x = at::ones({3}).to(device(0));
  const DeviceEvent made = DeviceEvent::record(device(0));
  const int64_t before = made_up::World::only().waits();
  EXPECT_EQ(on_device(x, host(), made).sum().item<float>(), 3);
  EXPECT_EQ(made_up::World::only().waits() - before, 2) << "for the event, then for the copy";
}

constexpr Action kSomeAction{ActionKind::Forward, 0, 1, 7};

TEST(Streams, AWorkerIsAheadOfItsDeviceByAFewActions) {
  const StreamScope scope(make_stream(device(0)));
  const at::Tensor x = at::ones({3}).to(device(0));
  ActionsAhead ahead(device(0));
  const int64_t before = made_up::World::only().waits();
  Action action = kSomeAction;
  for (; !ahead.full(); ++action.microbatch) {
    ahead.begin();
    x.add_(1);
    ahead.end(action, {}, Message{action.microbatch, {x.clone()}, {}, {}});
  }
  EXPECT_EQ(action.microbatch, 7 + 3);
  EXPECT_EQ(made_up::World::only().waits(), before) << "nothing has waited for the device";
  EXPECT_FALSE(ahead.oldest_is_done());

  ActionsAhead::Done done = ahead.take_oldest();
  EXPECT_EQ(made_up::World::only().waits(), before + 1);
  EXPECT_EQ(done.action, kSomeAction);
  EXPECT_TRUE(done.report->ready.is_past());
  EXPECT_EQ(done.report->tensors[0].sum().item<float>(), 6);
  EXPECT_FALSE(ahead.full());
  EXPECT_TRUE(ahead.oldest_is_done()) << "the sum was read behind it";
  EXPECT_EQ(ahead.take_oldest().action.microbatch, 8);
}

TEST(Streams, OnTheCpuAnActionIsDoneWhenItsFunctionReturns) {
  ActionsAhead ahead(host());
  ahead.begin();
  ahead.end(kSomeAction, {}, {});
  const auto after = ActionsAhead::Clock::now();
  EXPECT_TRUE(ahead.oldest_is_done());
  EXPECT_LE(ahead.take_oldest().ended, after);
  EXPECT_TRUE(ahead.empty());
}

// An action takes the time that the device needs for it, without that which it waits for its input.
TEST(Streams, TimesOfActionsAreTheDevices) {
  if (!DeviceEvent::keep_times()) GTEST_SKIP() << "events of this libtorch keep no times";
  const StreamScope scope(make_stream(device(0)));
  const at::Tensor x = at::ones({3}).to(device(0));
  const auto work = [&](int times) {
    for (int i = 0; i < times; ++i) x.add_(1);
  };
  const DeviceEvent before = DeviceEvent::record_with_time(device(0));
  work(1);
  const DeviceEvent after = DeviceEvent::record_with_time(device(0));
  after.wait();
  const double unit = after.seconds_since(before);
  ASSERT_GT(unit, 0);
  ActionsAhead ahead(device(0));
  for (const int waited : {0, 40}) {
    ahead.begin();
    work(waited);
    ahead.begin();  // its input has come
    work(25);
    ahead.end(kSomeAction, {}, {});
    work(10);
  }
  const auto first = ahead.take_oldest(), second = ahead.take_oldest();
  EXPECT_NEAR(seconds_between(first.started, first.ended) / unit, 25, 0.1);
  EXPECT_NEAR(seconds_between(second.started, second.ended) / unit, 25, 0.1);
  EXPECT_NEAR(seconds_between(first.ended, second.started) / unit, 50, 0.1);
}

// Elsewhere an action has begun when the one before it has ended, and ended when it is found done.
TEST(Streams, TimesOfActionsDoNotOverlapWhereTheDeviceKeepsNone) {
  if (DeviceEvent::keep_times()) GTEST_SKIP() << "events of this libtorch keep times";
  ActionsAhead ahead(device(0));
  for (int i = 0; i < 2; ++i) {
    ahead.begin();
    ahead.end(kSomeAction, {}, {});
  }
  const auto first = ahead.take_oldest(), second = ahead.take_oldest();
  EXPECT_LE(first.started, first.ended);
  EXPECT_EQ(second.started, first.ended);
  EXPECT_LE(second.started, second.ended);
}

TEST(Streams, AdamwsStepsAreMadeTogetherWhereLibtorchCan) {
  const at::Tensor x = at::ones({3}).to(device(0)), in_bf16 = x.to(at::kBFloat16);
  FusedAdamw together;
  EXPECT_EQ(together.take(x, x, x.clone(), x.clone(), 0.1), FusedAdamw::is_there());
  EXPECT_FALSE(together.take(x, x, in_bf16, in_bf16, 0.1)) << "it keeps no moments in bf16";
}

// There are no kernels for halves, and what would join them takes more memory than they save.
TEST(Streams, MastersInBf16AreTensorsOfTheirOwn) {
  const Pipeline pipeline = make_pipeline(experiment("pipedream", 2, 1));
  const auto specs = pipeline.plan().stages.front().parameters();
  EXPECT_EQ(WeightStore(specs, at::kBFloat16, at::kCPU).live_buffers(), 1);
  EXPECT_EQ(WeightStore(specs, at::kBFloat16, device(0)).live_buffers(), 2);
  EXPECT_EQ(master_bytes(at::kBFloat16, at::kCPU), 2);
  EXPECT_EQ(master_bytes(at::kBFloat16, device(0)), 4);
}

// Expects the CPU's numbers, but for rounding, and every use of memory to be ordered.
void expect_ordered(Experiment e, const std::string& what) {
  SCOPED_TRACE(name_of(e) + ", " + what);
  constexpr int64_t kUpdates = 3;
  made_up::World::only().take_faults();
  const Outcome cpu = run_on(e, kUpdates);
  e.executor = "threads";
  for (const bool each : {true, false}) {
    SCOPED_TRACE(each ? "a device each" : "one device");
    e.device_of = [each](int worker) { return device(each ? worker : 0); };
    const Outcome made = run_on(e, kUpdates);
    expect_no_faults();
    expect_near(made, cpu, e.compute);
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

// Carries tensors between threads of one process as NCCL does between processes: each end has a stream of its own.
struct Belt {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::deque<Message>> under_way;  // [channel]
  int ids = 0, messages = 0;
};
class BeltChannel final : public DeviceChannel {
 public:
  BeltChannel(Belt& belt, std::string id, at::Device device)
      : belt_(belt), id_(std::move(id)), device_(device), stream_(make_stream(device)) {}

  void send(Message message) override {
    const StreamScope scope(stream_);
    message.ready.block(device_);
    for (at::Tensor& tensor : message.tensors) {
      tensor.record_stream(*stream_);
      tensor = tensor.clone();
    }
    message.ready = DeviceEvent::record(device_);
    message.lease.reset();
    const std::lock_guard lock(belt_.mutex);
    belt_.under_way[id_].push_back(std::move(message));
    ++belt_.messages;
    belt_.changed.notify_all();
  }
  Message receive(const std::vector<at::Tensor>& like) override {
    std::unique_lock lock(belt_.mutex);
    auto& messages = belt_.under_way[id_];
    belt_.changed.wait(lock, [&] { return !messages.empty(); });
    Message message = std::move(messages.front());
    messages.pop_front();
    lock.unlock();
    EXPECT_EQ(message.tensors.size(), like.size());
    const StreamScope scope(stream_);
    for (at::Tensor& tensor : message.tensors) tensor = on_device(tensor, device_, message.ready);
    message.ready = DeviceEvent::record(device_);
    return message;
  }
  void abort() override {}

 private:
  Belt& belt_;
  std::string id_;
  at::Device device_;
  std::optional<c10::Stream> stream_;
};
class BeltChannels final : public DeviceChannels {
 public:
  BeltChannels(Belt& belt, at::Device device) : belt_(belt), device_(device) {}
  at::Device device() const override { return device_; }
  std::string identity() const override { return device_.str(); }
  std::string new_id() override {
    const std::lock_guard lock(belt_.mutex);
    return std::to_string(++belt_.ids);
  }
  std::unique_ptr<DeviceChannel> open(const std::string& id, bool) override {
    return std::make_unique<BeltChannel>(belt_, id, device_);
  }

 private:
  Belt& belt_;
  at::Device device_;
};

// One of two processes: a thread, whose workers run on a device of its own.
struct Process {
  Process(Experiment e, int rank, const std::string& place, Belt* belt)
      : ranks(rank, 2, "job", make_rendezvous({.directory = place, .world = 2})),
        map(make_schedule({e.schedule, e.stages, e.window, e.replicas}).workers, 2),
        pipeline(make_pipeline(on(std::move(e), rank), map.workers_of(rank))) {
    auto channels = belt == nullptr ? nullptr : std::make_unique<BeltChannels>(*belt, device(rank));
    ranks.meet({}, linked_ranks(pipeline, map), 60, std::move(channels));
  }
  static Experiment on(Experiment e, int rank) {
    e.device_of = [rank](int) { return device(rank); };
    return e;
  }
  Ranks ranks;
  RankMap map;
  Pipeline pipeline;
};

// The outcome for rank 0's stages.
Outcome run_in_two(const Experiment& e, int64_t updates, Belt* belt) {
  const TemporaryDirectory place;
  const SyntheticBatches batches = tiny_batches();
  std::jthread other([&] {
    Process process(e, 1, place.path().string(), belt);
    const auto answer = [](const std::string& question) { return question; };
    EXPECT_EQ(carry_out_commands(process.pipeline, process.ranks, process.map, {&batches, &batches, answer}),
              RunEnd::Finished);
  });
  Process process(e, 0, place.path().string(), belt);
  ProcessesExecutor executor(process.ranks, process.map);
  Outcome outcome = run_on(process.pipeline, executor, updates);
  executor.end_run(RunEnd::Finished);
  return outcome;
}

TEST(Streams, UsesAreOrderedBetweenProcesses) {
  Experiment bf16 = experiment("1f1b", 4, 3);
  bf16.compute = at::kBFloat16;
  bf16.clip_scope = ClipScope::Global;
  Experiment replicas = experiment("pipedream", 2, 3);
  replicas.replicas = 2;
  made_up::World::only().take_faults();
  for (const Experiment& e : {experiment("pipedream", 4, 2), bf16, replicas}) {
    SCOPED_TRACE(name_of(e));
    const Outcome cpu = run_on(e, 3);
    Belt belt;
    expect_near(run_in_two(e, 3, &belt), cpu, e.compute);
    EXPECT_GT(belt.messages, 20);
    expect_no_faults();
    expect_near(run_in_two(e, 3, nullptr), cpu, e.compute);  // through the host
    expect_no_faults();
  }
}

// The losses of two windows.
std::map<int64_t, double> losses_of(const std::string& kind, const std::vector<at::Device>& devices) {
  const TinyModel model = tiny_model(kind);
  RuntimeOptions options;
  options.learning_rate = [](int64_t) { return 1e-3; };
  options.devices = devices;
  const std::vector<LayerRange> ranges = {{0, 3}, {3, static_cast<int>(model.layers.size())}};
  OptimizerConfig optimizer;
  optimizer.kind = "adamw";
  Pipeline pipeline(make_schedule({.name = "1f1b", .stages = 2, .window = 3}), model.layers, ranges, options,
                    optimizer);
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = model.batches.get();
  segment.microbatches = 6;
  Recorder recorder;
  make_threads_executor()->run(pipeline, segment, recorder);
  return recorder.losses;
}

TEST(Streams, UsesAreOrderedInEveryModel) {
  made_up::World::only().take_faults();
  for (const char* kind : {"gpt", "bert", "llama"}) {
    SCOPED_TRACE(kind);
    const auto cpu = losses_of(kind, {}), made = losses_of(kind, {device(0), device(1)});
    expect_no_faults();
    ASSERT_EQ(cpu.size(), made.size());
    for (const auto& [microbatch, loss] : made) EXPECT_NEAR(loss, cpu.at(microbatch), 1e-3) << microbatch;
  }
}

TEST(Streams, ADeviceWithoutANumberIsTheCurrentOneAndOneThatIsNotThereIsTold) {
  Experiment e = experiment("pipedream", 2, 1);
  e.device_of = [](int) { return at::Device(made_up::kType); };
  const Pipeline pipeline = make_pipeline(e);
  EXPECT_EQ(pipeline.options().device_of(1), device(0));
  e.device_of = [](int) { return at::Device(made_up::kType, made_up::kDevices); };
  EXPECT_THROW(make_pipeline(e), InputError);
  e.device_of = [](int) { return at::Device(at::kVulkan, 0); };
  EXPECT_THROW(make_pipeline(e), InputError);
}

// Keeps what is sent.
struct Drawer final : Sender {
  explicit Drawer(std::vector<Message>& messages) : messages(messages) {}
  bool has_room() const override { return true; }
  void send(Message message) override { messages.push_back(std::move(message)); }
  std::vector<Message>& messages;
};

TEST(Streams, AGradientsNextUseComesAfterAllOwnersHaveReadTheirShards) {
  const at::Device here = device(0);
  made_up::World::only().take_faults();
  std::vector<ParameterSpec> specs(2);
  for (ParameterSpec& spec : specs) spec.shape = {40};
  std::vector<Message> messages;
  ReplicaLinks links;
  for (int shard = 0; shard < 2; ++shard) links.sums.push_back(std::make_unique<Drawer>(messages));
  const std::vector<Shard> shards = cut_into_shards(specs, 2);
  GradientChain chain(links, here, flat_elements(specs), kReductionPart, shards);
  BufferPool pool(specs, at::kFloat, here);
  {
    const StreamScope replica(make_stream(here));
    WindowGradient gradient;
    gradient.flat = pool.take();
    chain.finish(0, std::move(gradient), 0, true);
  }
  ASSERT_EQ(messages.size(), 2);
  for (Message& message : messages) {
    const StreamScope owner(make_stream(here));
    const auto come = arrived_on(here, std::exchange(message, {}));
    const at::Tensor read = come->tensors[0] + 1;
  }
  const StreamScope replica(make_stream(here));
  pool.take()->flat.zero_();
  expect_no_faults();
}

}  // namespace
}  // namespace gyre
