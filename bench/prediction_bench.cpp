// How well the simulator predicts a run: a run measures its own costs, the simulator predicts the same run from them,
// and the ratio of measured to predicted tokens/s is printed, with the scope of clipping. Two workers.
//   prediction_bench [UPDATES]
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "gyre/model/gpt.h"
#include "gyre/plan/partition.h"
#include "gyre/runtime/executor.h"
#include "gyre/schedule/builders.h"
#include "gyre/simulate/simulator.h"
#include "gyre/train/measurements.h"
#include "support.h"

namespace gyre {
namespace {

constexpr int64_t kSequences = 8, kContext = 128, kWindow = 8;

struct Case {
  std::string schedule;
  ClipScope scope = ClipScope::Auto;
  int64_t layers = 6, vocabulary = 256;
};

void compare(const Case& run, int64_t updates) {
  ModelSettings gpt;
  gpt.layers = run.layers;
  gpt.vocabulary = run.vocabulary;
  const Layers layers = build_gpt(gpt);
  std::vector<double> costs;
  for (const auto& layer : layers) costs.push_back(layer->cost(kSequences * kContext));
  RuntimeOptions options;
  options.compute = at::kBFloat16;
  options.clip = 1;
  options.learning_rate = [](int64_t) { return 1e-4; };
  Schedule schedule =
      make_schedule({.name = run.schedule, .stages = 2, .window = kWindow, .tb_over_tf = 1.6, .clip_scope = run.scope});
  options.weights = schedule.weights;
  OptimizerConfig optimizer;
  optimizer.kind = "adamw";
  Pipeline pipeline(std::move(schedule), layers, partition_by_cost(costs, 2), options, optimizer);

  const bench::RandomTokens batches(kSequences, kContext, run.vocabulary);
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  const auto executor = make_executor("threads");
  bench::Silent ignore;
  const auto do_updates = [&](int64_t first, int64_t count) {
    segment.first_update = first;
    segment.first_microbatch = first * kWindow;
    segment.microbatches = count * kWindow;
    return executor->run(pipeline, segment, ignore);
  };
  do_updates(0, 2);  // warms up
  const SegmentReport report = do_updates(2, updates);
  RunMeasurements measurements;
  measurements.add(segment, report, 0);
  const CostModel model = measurements.cost_model(pipeline, optimizer_bytes(pipeline), batches.tokens_per_batch());
  const auto predict = [&](const Schedule& simulated) {
    return simulate(simulated, model, {.microbatches = report.microbatches}).tokens_per_time;
  };
  const double measured = static_cast<double>(report.microbatches * batches.tokens_per_batch()) / report.seconds;
  const double predicted = predict(pipeline.schedule());
  fmt::print("{:<14} {:<6} measured {:>8.0f} predicted {:>8.0f} tokens/s, ratio {:.3f}", run.schedule,
             pipeline.schedule().global_norm ? "global" : "stage", measured, predicted, measured / predicted);
  if (pipeline.schedule().global_norm) {
    Schedule apart = pipeline.schedule();
    set_clip_scope(apart, ClipScope::None);
    fmt::print(" ({:.3f} if no update waited for others)", measured / predict(apart));
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace gyre

int main(int argc, char** argv) {
  const int64_t updates = argc > 1 ? std::atoll(argv[1]) : 20;
  for (const char* name : {"pipedream", "1f1b", "amdp", "gpipe", "zb-h1", "chimera", "pipedream-2bw", "paci"}) {
    gyre::compare({name}, updates);
  }
  // One block, and a head that is more work than the other stage: without a common norm, windows overlap.
  for (const auto scope : {gyre::ClipScope::Global, gyre::ClipScope::Stage}) {
    gyre::compare({.schedule = "zb-h1", .scope = scope, .layers = 1, .vocabulary = 8192}, updates);
  }
}
