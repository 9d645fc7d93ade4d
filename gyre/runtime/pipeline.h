// What persists between segments of a run: every stage's owner with its weights and optimizer, and the replicas placed
// on workers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gyre/data/batch.h"
#include "gyre/model/stage.h"
#include "gyre/optim/config.h"
#include "gyre/plan/partition.h"
#include "gyre/runtime/gradient_windows.h"
#include "gyre/runtime/weight_store.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// Over what the norm that clips a gradient is taken: the whole model (needs a flush: stages meet once per update) or
// each stage by itself.
enum class ClipScope { None, Global, Stage };

struct RuntimeOptions {
  at::ScalarType compute = at::kBFloat16;  // kBFloat16 or kFloat
  WeightPolicy weights = WeightPolicy::Stash;
  double discrepancy = 0.135;  // WeightPolicy::Corrected: D
  bool recompute = false;      // keep a stage's input alone, and run its forward again before the backward
  ClipScope clip_scope = ClipScope::Stage;
  double clip = 1.0;                             // largest gradient norm
  int64_t max_skipped = 0;                       // updates in a row that may be left out for gradients not finite
  std::function<double(int64_t)> learning_rate;  // by update, counted from 1
  uint64_t seed = 1;
  int threads_per_worker = 1;  // intra-op threads; part of what fixes the bits
  double stall_seconds = 60;   // all workers waiting for so long is a stall; one action for so long is told
};

// What there is once for each stage, on its owner.
struct StageOwner {
  StageOwner(Stage layers, at::ScalarType compute, bool shared, const ForecastOptions& forecast);

  Stage layers;
  WeightStore weights;
  std::unique_ptr<Optimizer> optimizer;
  MeanDelays mean_delay;
  int64_t skipped_in_a_row = 0;  // updates whose gradient was not finite
};

// One pipeline's copy of a stage, on its worker. In one process the version it reads is the owner's own buffer.
struct Replica {
  explicit Replica(StageOwner& owner);

  StageOwner& owner;
  WeightReader weights;  // the version it has now
  GradientWindows gradients;
};

class Pipeline {
 public:
  // The calling thread's operations have options.threads_per_worker threads from then on. Initial weights are drawn
  // from options.seed. `ranges` has one entry per stage of `schedule`. Errors: InputError for combinations that cannot
  // be served (global clipping without a flush).
  Pipeline(Schedule schedule, const Layers& layers, const std::vector<LayerRange>& ranges, RuntimeOptions options,
           const OptimizerConfig& optimizer);

  const Schedule& schedule() const { return schedule_; }
  const RuntimeOptions& options() const { return options_; }
  StageOwner& owner(int stage) { return *owners_[stage]; }
  Replica& replica(int pipeline, int stage) { return *replicas_[pipeline * schedule_.stages + stage]; }
  int64_t parameter_count() const;

  // Before the first action of every segment, forward-only ones too: all replicas read the newest version as it is.
  void begin_segment();

  // Between segments only. fp32 masters by full name, and the optimizers' state: live tensors, not copies.
  NamedTensors weights() const;
  NamedTensors optimizer_state() const;
  // The pipeline continues as after `updates` updates. InputError names a weight that is missing or has another shape.
  void restore(const NamedTensors& weights, const NamedTensors& optimizer_state, int64_t updates);

 private:
  void synchronise_replicas();

  Schedule schedule_;
  RuntimeOptions options_;
  std::vector<std::unique_ptr<StageOwner>> owners_;  // [stage]
  std::vector<std::unique_ptr<Replica>> replicas_;   // [pipeline * stages + stage]
};

}  // namespace gyre
