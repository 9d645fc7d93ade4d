// How well the simulator predicts a run: a run measures its own costs, the simulator predicts the same run from them,
// and the ratio of measured to predicted tokens/s is printed. Two workers.
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

constexpr int64_t kSequences = 8, kContext = 128, kVocabulary = 256, kWindow = 8;

void compare(const std::string& name, int64_t updates) {
  ModelSettings gpt;
  gpt.layers = 6;
  gpt.vocabulary = kVocabulary;
  const Layers layers = build_gpt(gpt);
  std::vector<double> costs;
  for (const auto& layer : layers) costs.push_back(layer->cost(kSequences * kContext));
  RuntimeOptions options;
  options.compute = at::kBFloat16;
  options.clip_scope = ClipScope::Stage;
  options.clip = 1;
  options.learning_rate = [](int64_t) { return 1e-4; };
  Schedule schedule = make_schedule({.name = name, .stages = 2, .window = kWindow, .tb_over_tf = 1.6});
  options.weights = schedule.weights;
  OptimizerConfig optimizer;
  optimizer.kind = "adamw";
  Pipeline pipeline(std::move(schedule), layers, partition_by_cost(costs, 2), options, optimizer);

  const bench::RandomTokens batches(kSequences, kContext, kVocabulary);
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  const auto executor = make_executor("threads");
  bench::Silent ignore;
  const auto run = [&](int64_t first, int64_t count) {
    segment.first_update = first;
    segment.first_microbatch = first * kWindow;
    segment.microbatches = count * kWindow;
    return executor->run(pipeline, segment, ignore);
  };
  run(0, 2);  // warms up
  const SegmentReport report = run(2, updates);
  RunMeasurements measurements;
  measurements.add(segment, report, 0);
  const Simulation simulation = simulate(
      pipeline.schedule(), measurements.cost_model(pipeline, optimizer_bytes(pipeline), batches.tokens_per_batch()),
      {.microbatches = report.microbatches});
  const double measured = static_cast<double>(report.microbatches * batches.tokens_per_batch()) / report.seconds;
  fmt::print("{:<18} measured {:>8.0f} predicted {:>8.0f} tokens/s, ratio {:.3f}\n", name, measured,
             simulation.tokens_per_time, measured / simulation.tokens_per_time);
}

}  // namespace
}  // namespace gyre

int main(int argc, char** argv) {
  const int64_t updates = argc > 1 ? std::atoll(argv[1]) : 20;
  for (const char* name : {"pipedream", "1f1b", "amdp", "gpipe", "zb-h1", "chimera", "pipedream-2bw", "paci"}) {
    gyre::compare(name, updates);
  }
}
