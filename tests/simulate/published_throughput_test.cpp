// AMDP's published throughput table (arXiv 2605.29664: GPT of 1.56B parameters, microbatch 4, context 1024), predicted.
//
// Assumed, beyond the published sizes: a backward takes two forwards; a block is the unit of time; the head has 2.62
// times a block's multiply-adds (80.4M against 30.7M per token) but, being one large product, runs at 1.55 times a
// block's rate, so that it takes 1.7; it stands on the last stage, as published. Updates take 1e-9 of a block's forward
// per parameter, links are fast, and XPipe is PipeDream-2BW with a pass over the weights, as costly as an update, for
// its prediction.
#include <gtest/gtest.h>

#include "gyre/schedule/builders.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

constexpr double kHead = 1.7;
constexpr double kBlocks = 48;
constexpr double kBlockParameters = 30.7e6, kTableParameters = 80.4e6;
constexpr double kUpdatePerParameter = 1e-9;

CostModel gpt_costs(int stages, bool predicts) {
  CostModel model;
  for (int stage = 0; stage < stages; ++stage) {
    const bool last = stage == stages - 1;
    const double blocks = kBlocks / stages;
    const double parameters = blocks * kBlockParameters + (stage == 0 || last ? kTableParameters : 0);
    StageCost cost;
    cost.forward = blocks + (last ? kHead : 0);
    cost.backward = 2 * cost.forward;
    cost.backward_input = cost.backward_weights = cost.forward;
    cost.update = kUpdatePerParameter * parameters * (predicts ? 2 : 1);
    model.stages.push_back(cost);
  }
  return parse_costs(to_json(model), "test");  // as a user's cost file would be
}

double throughput(const std::string& name, int stages, int64_t window, bool predicts = false) {
  const Schedule schedule = make_schedule({name, stages, window});
  const CostModel costs = gpt_costs(stages, predicts);
  const int64_t n = 8 * schedule.shift;
  return static_cast<double>(n) / (simulate(schedule, costs, {.microbatches = 2 * n}).makespan -
                                   simulate(schedule, costs, {.microbatches = n}).makespan);
}

TEST(PublishedThroughput, OrderOfMethodsAndAmdpsGain) {
  // (depth, samples per update); four samples in a microbatch.
  for (const auto& [d, samples] : {std::pair<int, int64_t>{4, 16}, {4, 64}, {8, 32}, {8, 128}}) {
    const int64_t window = samples / 4;
    const double amdp = throughput("amdp", d, window), two = throughput("pipedream-2bw", d, window),
                 xpipe = throughput("pipedream-2bw", d, window, true),
                 interleaved = throughput("interleaved-1f1b", 2 * d, window);
    EXPECT_GT(amdp, two) << d << " " << samples;
    EXPECT_GT(two, xpipe) << d << " " << samples;
    EXPECT_GT(xpipe, interleaved) << d << " " << samples;
    if (d == 8 && samples == 128) {
      EXPECT_NEAR(amdp / two, 83.7 / 71.6, 0.05);
    }
  }
}

}  // namespace
}  // namespace gyre
