// What a run will hold in memory, from its configuration alone: a run that cannot fit is refused before anything is
// allocated, and so is what is done with a trained one.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/core/memory_limit.h"
#include "gyre/simulate/memory.h"

namespace gyre {

// Bytes by what holds them. Doubles: a wrong configuration's sizes fit no integer.
struct MemoryParts {
  double weights = 0;    // masters are counted with the optimizer, as in the simulator's model
  double gradients = 0;  // accumulators of windows
  double optimizer = 0;
  double activations = 0;  // of microbatches in flight, and what comes and goes in an action
  double total() const { return weights + gradients + optimizer + activations; }
};

// What is done with a configuration's model. All but training hold the checkpoint's weights beside their own.
enum class Work { Train, Evaluate, Generate, Diagnose };

// No work of its kind holds less. Takes microseconds.
//   Train     one version of the weights, one window's gradients, the optimizer's state, and the activations of the one
//             microbatch whose forward has just ended in the last stage
//   Evaluate  the same without gradients, and of activations those of the costliest layer alone
//   Generate  the weights alone: a prompt may be one token
//   Diagnose  as Train, in fp32
MemoryParts least_memory(const Config& config, Work work = Work::Train);

// InputError where the least is above the limit, naming the key that costs most.
void check_memory(const Config& config, const MemoryLimit& limit, Work work = Work::Train);

// What the schedule makes of it.
struct PredictedMemory {
  std::vector<WorkerMemory> workers;  // as on a device each: every replica has its own weights
  MemoryParts process;                // all of them here, where replicas read their owner's
  double copy = 0;                    // of weights and optimizers' states, while they are written beside training
};
PredictedMemory predict_memory(const Config& config, const Schedule& schedule);
// Whether a process that holds `program` bytes already has room for all of that and the copy.
bool has_room_for_copy(const PredictedMemory& memory, double program, const MemoryLimit& limit);

}  // namespace gyre
