// Workers on libtorch's `meta` device, which has shapes and no data: a worker that makes a tensor elsewhere, or reads a
// tensor's values, throws there. Nobody reads the workers' reports, since that is the conductor's part.
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gyre/runtime/segment_setup.h"
#include "runtime/fixture.h"
#include "runtime/tiny_models.h"

namespace gyre {
namespace {

using namespace testing_support;

// Runs three windows; every worker gets to the end of its program.
void run_on_meta(const Experiment& e, const std::string& model_kind) {
  SCOPED_TRACE(name_of(e) + ", " + model_kind);
  const c10::NoGradGuard no_grad;
  const TinyModel model = tiny_model(model_kind);
  std::vector<LayerRange> ranges;
  for (int stage = 0; stage < e.stages; ++stage) {
    const int last = stage + 1 == e.stages ? static_cast<int>(model.layers.size()) : stage + 1;
    ranges.push_back({stage, last});
  }
  const Schedule schedule =
      make_schedule({.name = e.schedule, .stages = e.stages, .window = e.window, .clip_scope = ClipScope::Auto});
  RuntimeOptions options;
  options.compute = e.compute;
  options.weights = e.weights;
  options.recompute = e.recompute;
  options.clip = 1;
  options.discrepancy = 0.135;
  options.learning_rate = [](int64_t) { return 1e-3; };
  options.devices.assign(static_cast<size_t>(schedule.workers), at::Device(at::kMeta));
  OptimizerConfig optimizer;
  optimizer.kind = e.optimizer;
  Pipeline pipeline(schedule, model.layers, ranges, options, optimizer);

  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = model.batches.get();
  segment.microbatches = 3 * e.window;
  Recorder recorder;
  SegmentSetup setup(pipeline, segment, &recorder, {});
  const auto try_step = [](const auto& worker) { return worker->try_step(); };
  std::vector<Worker::Step> steps;
  do {
    steps.clear();
    std::ranges::transform(setup.workers, std::back_inserter(steps), try_step);
  } while (std::ranges::count(steps, Worker::Step::Done) > 0);
  EXPECT_EQ(std::ranges::count(steps, Worker::Step::Finished), schedule.workers);
  for (const auto& [name, weight] : pipeline.weights()) EXPECT_TRUE(weight.is_meta()) << name;
}

TEST(Meta, WorkersReadNoValuesUnderAnySchedule) {
  for (const std::string& schedule : schedule_names()) {
    for (const char* model : {"gpt", "bert", "llama"}) {
      for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        Experiment e = experiment(schedule, 4, 4);
        e.compute = compute;
        run_on_meta(e, model);
      }
    }
  }
}

TEST(Meta, WorkersReadNoValuesUnderAnyWeightPolicyOrOptimizer) {
  for (const WeightPolicy weights : {WeightPolicy::Latest, WeightPolicy::Predict, WeightPolicy::Corrected}) {
    for (const bool recompute : {false, true}) {
      Experiment e = experiment("pipedream", 4, 1);
      e.weights = weights;
      e.recompute = recompute;
      run_on_meta(e, "gpt");
    }
  }
  for (const std::string& optimizer : optimizer_kinds().names()) {
    Experiment e = experiment("amdp", 4, 4);
    e.optimizer = optimizer;
    run_on_meta(e, "bert");
  }
}

}  // namespace
}  // namespace gyre
