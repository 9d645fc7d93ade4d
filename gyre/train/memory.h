// Predicts what a run will hold in memory from its configuration alone, so that a run that cannot fit is refused before
// anything is allocated. So is evaluating, generating or diagnosing with a trained one.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/config/config.h"
#include "gyre/core/memory_limit.h"
#include "gyre/simulate/memory.h"

namespace gyre {

// Bytes by use. Doubles, since the sizes in a wrong configuration may not fit an integer.
struct MemoryParts {
  double weights = 0;    // masters are counted with the optimizer, as in the simulator's model
  double gradients = 0;  // sums of windows
  double optimizer = 0;
  double activations = 0;  // of microbatches in flight, and what one action holds temporarily
  double total() const { return weights + gradients + optimizer + activations; }
};

// What is done with the model.
enum class Work { Train, Evaluate, Generate, Diagnose };

// A lower bound: no work of its kind holds less. Takes microseconds.
//   Train     one version of the weights, one window's gradients, the optimizer's state, and the activations of the one
//             microbatch whose forward has just ended in the last stage
//   Evaluate  the weights, and the activations of the costliest layer: no update follows
//   Generate  the weights alone: a prompt may be one token
//   Diagnose  as Train, in fp32 and without recompute, and the checkpoint's weights
MemoryParts least_memory(const Config& config, Work work = Work::Train);

// Throws InputError, naming the key that costs most, if the least memory is above the limit.
void check_memory(const Config& config, const MemoryLimit& limit, Work work = Work::Train);

// What training under a schedule holds.
struct PredictedMemory {
  std::vector<WorkerMemory> workers;  // each on a device of its own: every replica has its own weights
  MemoryParts process;                // all workers in one process: replicas read their owner's weights
  double copy = 0;                    // of weights and optimizers' states, while they are written in the background
};
PredictedMemory predict_memory(const Config& config, Schedule schedule);
// Whether a process that already holds `program` bytes has room for `memory` and the copy.
bool has_room_for_copy(const PredictedMemory& memory, double program, const MemoryLimit& limit);

}  // namespace gyre
