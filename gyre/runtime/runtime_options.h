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

// By default nothing is rounded, clipped or forecast, and no action counts as slow. The defaults that users get are
// declared with the configuration.
struct RuntimeOptions {
  at::ScalarType compute = at::kFloat;  // kFloat or kBFloat16
  std::vector<at::Device> devices;      // [worker]: where it computes; empty: all on the CPU
  WeightPolicy weights = WeightPolicy::Stash;
  double discrepancy = 0;   // WeightPolicy::Corrected: D, between 0 and 1
  bool recompute = false;   // save only the inputs of groups of layers, and repeat their forwards in the backward
  double clip = 0;          // largest norm of a stage's gradient, or of all stages' (Schedule::global_norm); 0: any
  double ema_decay = 0;     // of the averages of weights (optim/weight_average.h); 0: no averages
  int64_t max_skipped = 0;  // updates in a row that may be skipped for gradients not finite
  std::function<double(int64_t)> learning_rate;  // by update, counted from 1; needed if there is an optimizer
  uint64_t seed = 1;
  int64_t reduction_part = kReductionPart;  // elements per message of a gradient from replica to replica
  int threads_per_worker = 1;               // intra-op threads; the bits depend on it
  bool pin_workers = false;                 // each worker's threads stay on cores of their own
  double stall_seconds = 1e6;  // all workers waiting this long is a stall; one action this long is reported

  at::Device device_of(int worker) const { return devices.empty() ? host() : devices[static_cast<size_t>(worker)]; }
};

}  // namespace gyre
