// How a pipeline runs, whatever its schedule, model and optimizer are.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "gyre/schedule/reduction_chains.h"
#include "gyre/schedule/schedule.h"
#include "gyre/tensors/device.h"

namespace gyre {

// Over what the norm that clips a gradient is taken: the whole model (needs a flush: stages meet once per update) or
// each stage by itself.
enum class ClipScope { None, Global, Stage };

// By default nothing is rounded, clipped or forecast, and no action counts as slow: what users get without asking is
// declared with the configuration.
struct RuntimeOptions {
  at::ScalarType compute = at::kFloat;  // kFloat or kBFloat16
  std::vector<at::Device> devices;      // [worker]: where all that it computes is; empty: the CPU for all
  WeightPolicy weights = WeightPolicy::Stash;
  double discrepancy = 0;  // WeightPolicy::Corrected: D, between 0 and 1
  bool recompute = false;  // keep a stage's input alone, and run its forward again before the backward
  ClipScope clip_scope = ClipScope::None;
  double clip = 0;                               // largest gradient norm within the scope
  double ema_decay = 0;                          // of the averages of weights (optim/weight_average.h); 0: none
  int64_t max_skipped = 0;                       // updates in a row that may be left out for gradients not finite
  std::function<double(int64_t)> learning_rate;  // by update, counted from 1
  uint64_t seed = 1;
  int64_t reduction_part = kReductionPart;  // elements of a gradient that travel from replica to replica at once
  int threads_per_worker = 1;               // intra-op threads; part of what fixes the bits
  bool pin_workers = false;                 // a worker's threads stay on cores of their own
  double stall_seconds = 1e6;  // all workers waiting for so long is a stall; one action for so long is reported

  at::Device device_of(int worker) const { return devices.empty() ? host() : devices[static_cast<size_t>(worker)]; }
};

}  // namespace gyre
