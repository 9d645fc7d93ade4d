// What an optimizer is told of the update that it makes.
#pragma once

#include <cstdint>

namespace gyre {

class SideThread;

// Mean delays once the pipeline is full, the same for a whole run: for what must not depend on how it fills.
struct MeanDelays {
  double stage = 0;       // of the stage itself
  double all_stages = 0;  // their mean
};

// One update's circumstances. `update` counts from 1 (Adam's t). `delay` is that of the window's first microbatch.
struct UpdateContext {
  int64_t update = 1;
  int64_t delay = 0;
  MeanDelays mean_delay;
  double learning_rate = 0;
  // For optimizers that say they take it, what gradients are to be multiplied by; for others 1.
  double gradient_factor = 1;
  // For what may end in a later update; null: it is done at once.
  SideThread* beside = nullptr;
};

}  // namespace gyre
