// Whole runs with [pipeline] device: trained, stopped and resumed on made-up devices with streams, and on GPUs where
// there are any.
#include "gyre/tensors/device_memory.h"
#include "runtime/made_up_device.h"
#include "train/ranked_fixture.h"

namespace gyre {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

const std::string kMadeUp = "privateuseone";

// The parameter is a type of device.
class RunsOnDevices : public RankedRuns, public ::testing::WithParamInterface<std::string> {
 protected:
  // On one of them, or on all.
  static std::string on(int number) { return fmt::format("pipeline.device={}:{}", GetParam(), number); }
  static std::string on_all() { return "pipeline.device=" + GetParam(); }
  static int count() { return device_count(at::Device(GetParam()).type()); }
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> losses;
    for (const Json& line : lines(name, "step")) losses.push_back(line["loss"]);
    losses.push_back(lines(name, "eval").back()["val_loss"]);
    return losses;
  }
  void expect_near(const std::string& name, const std::string& on_cpu) const {
    const auto made = losses(name), cpu = losses(on_cpu);
    ASSERT_EQ(made.size(), cpu.size());
    ASSERT_EQ(made.size(), 13);
    for (size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], cpu[i], 2e-3) << i;
  }
  void SetUp() override {
    if (count() == 0) GTEST_SKIP() << "there is no " << GetParam() << " here";
    made_up::World::only().take_faults();
  }
  void TearDown() override {
    const auto faults = made_up::World::only().take_faults();
    EXPECT_TRUE(faults.empty()) << faults.front();
  }
};

TEST_P(RunsOnDevices, TrainAsOnTheCpu) {
  run("cpu");
  for (const std::string executor : {"replay", "threads"}) {
    run(executor, {.set = {on_all(), "pipeline.executor=" + executor}});
    expect_near(executor, "cpu");
  }
  EXPECT_EQ(record("replay"), record("threads"));
}

TEST_P(RunsOnDevices, TheBitsAreTheSameEachTime) {
  for (const std::string precision : {"fp32", "bf16"}) {
    const std::string first = precision + "-first", second = precision + "-second";
    for (const std::string& name : {first, second}) {
      run(name, {.set = {on_all(), "run.precision=" + precision, "pipeline.executor=threads"}});
    }
    EXPECT_EQ(record(first), record(second));
    EXPECT_EQ(contents(first), contents(second));
  }
}

TEST_P(RunsOnDevices, EveryOptimizersStateIsSavedAndTakenUpAgain) {
  for (const std::string& optimizer : optimizer_kinds().names()) {
    SCOPED_TRACE(optimizer);
    const std::vector<std::string> set = {on_all(), "optimizer.kind=" + optimizer, "optimizer.ema_decay=0.9",
                                          "optimizer.decay=constant", "run.eval_every=4"};
    const auto with = [&set](const std::string& last) {
      auto all = set;
      all.push_back(last);
      return all;
    };
    run("whole-" + optimizer, {.set = set});
    run("cut-" + optimizer, {.set = with("run.updates=8")});
    resume("cut-" + optimizer, {"run.updates=12"});
    EXPECT_EQ(record("cut-" + optimizer), record("whole-" + optimizer));
    EXPECT_EQ(contents("cut-" + optimizer), contents("whole-" + optimizer));
  }
}

TEST_P(RunsOnDevices, ARunMovesBetweenDevices) {
  const std::string decay = "optimizer.decay=constant";
  run("cpu-only", {.set = {decay}});
  run("moved", {.set = {on_all(), decay, "run.updates=4"}});
  resume("moved", {"pipeline.device=cpu", "run.updates=8"});
  const int last = count() - 1;
  resume("moved", {on(last), "run.updates=12"});
  EXPECT_THAT(messages(), HasSubstr(fmt::format(R"(pipeline.device "cpu" -> "{}:{}")", GetParam(), last)));
  expect_near("moved", "cpu-only");
}

TEST_P(RunsOnDevices, OfSeveralProcesses) {
  run("alone");
  expect_sound(run_ranks("ranks", {.set = {on_all()}}, 2));
  expect_near("ranks", "alone");
  run("one", {.set = {on_all()}});
  EXPECT_EQ(contents("ranks"), contents("one"));
}

TEST_P(RunsOnDevices, TheSummarySaysWhatTheDeviceHolds) {
  const std::string told = check_of("summary", {.set = {on_all()}});
  EXPECT_THAT(told, HasSubstr("device     " + GetParam() + "; worker "));
  EXPECT_EQ(check_of("summary", {}).find("device  "), std::string::npos);
}

TEST_P(RunsOnDevices, ARunThatCannotFitIsRefusedWhereTheDeviceTellsItsMemory) {
  if (!device_memory(at::Device(GetParam() + ":0")))
    GTEST_SKIP() << "libtorch does not tell the memory of " << GetParam();
  EXPECT_THAT(complaint("large", {.set = {on_all(), "pipeline.microbatch=1048576", "model.context=65536"}}),
              HasSubstr(" of memory; "));
  EXPECT_FALSE(fs::exists(path("large")));
}

TEST_P(RunsOnDevices, ADeviceThatIsNotThereIsToldBeforeAnythingIsWritten) {
  EXPECT_THAT(complaint("absent", {.set = {on(count())}}),
              HasSubstr(fmt::format("{} {} seen here", count(), count() == 1 ? "is" : "are")));
  EXPECT_FALSE(fs::exists(path("absent")));
}

INSTANTIATE_TEST_SUITE_P(Types, RunsOnDevices, ::testing::Values(kMadeUp, "cuda"),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace gyre
