// How much faster the executor `threads` is than `replay`: the same pipeline and microbatches with each in turn, five
// times.
//   executors_bench [STAGES] [UPDATES]
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "gyre/model/gpt.h"
#include "gyre/optim/settings/basis_rotation_settings.h"
#include "gyre/plan/partition.h"
#include "gyre/runtime/executor.h"
#include "gyre/schedule/builders.h"
#include "gyre/tensors/host_memory.h"
#include "support.h"

namespace {

using namespace gyre;
using namespace gyre::bench;

constexpr int64_t kSequences = 8, kContext = 128, kVocabulary = 256;
constexpr int kPairs = 5;

// A pipeline of eight equal blocks; embedding and head are small beside them.
Pipeline make_pipeline(int stages, const std::string& optimizer) {
  ModelSettings gpt;
  gpt.vocabulary = kVocabulary;
  gpt.context = kContext;
  const Layers layers = build_gpt(gpt);
  std::vector<double> costs;
  for (const auto& layer : layers) costs.push_back(layer->cost(kSequences * kContext));
  RuntimeOptions options;
  options.compute = at::kBFloat16;
  options.clip = 1;
  options.learning_rate = [](int64_t) { return 1e-4; };
  OptimizerConfig config;
  config.kind = optimizer;
  config.own = gyre::BasisRotationSettings{.products = "bf16"};
  return Pipeline(make_schedule({"pipedream", stages, 1}), layers, partition_by_cost(costs, stages), options, config);
}

// Tokens per second of `updates` updates. done: the number of updates made before; is increased.
double measure(Pipeline& pipeline, const std::string& executor, int64_t& done, int64_t updates) {
  const RandomTokens batches(kSequences, kContext, kVocabulary);
  Segment segment;
  segment.schedule = &pipeline.schedule();
  segment.batches = &batches;
  segment.first_update = segment.first_microbatch = done;
  segment.microbatches = updates;
  Silent observer;
  const SegmentReport report = make_executor(executor)->run(pipeline, segment, observer);
  done += updates;
  return static_cast<double>(updates * batches.tokens_per_batch()) / report.seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const gyre::HostMemory memory;  // as in gyre-engine
  const int stages = argc > 1 ? std::atoi(argv[1]) : 2;
  const int64_t updates = argc > 2 ? std::atoll(argv[2]) : 40;
  for (const char* optimizer : {"adamw", "basis-rotation"}) {
    Pipeline pipeline = make_pipeline(stages, optimizer);
    int64_t done = 0;
    measure(pipeline, "replay", done, updates / 2);  // warms up
    std::vector<double> replay, threads, ratios;
    for (int pair = 0; pair < kPairs; ++pair) {
      replay.push_back(measure(pipeline, "replay", done, updates));
      threads.push_back(measure(pipeline, "threads", done, updates));
      ratios.push_back(threads.back() / replay.back());
    }
    fmt::print("{:<15} stages {}  replay {:>7.0f} tokens/s  threads {:>7.0f} tokens/s  ratio {:.2f} (median of {})\n",
               optimizer, stages, median(replay), median(threads), median(ratios), kPairs);
  }
}
