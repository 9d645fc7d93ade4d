// What delay does to a trained run, measured at a checkpoint: how far the Hessian is from diagonal in the weights' own
// and in the rotated coordinates, how well late updates agree with those that current gradients would have made, and
// how much updates undo each other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gyre/inspect/trained_model.h"

namespace gyre {

struct DiagnosticsOptions {
  int draws = 33;            // for the estimate of the Hessian norm; odd, 15 or more (hessian_norm.h). 0 leaves it out
  int64_t microbatches = 4;  // that the Hessian is averaged over
  int64_t updates = 24;      // over which directions are compared
  // Told, if there is one, how much is done of each part of the work: `done` of `all`, each of which is a `thing`.
  std::function<void(int64_t done, int64_t all, const char* thing)> progress;
};

// Throws InputError unless that many draws give an estimate, or none is wanted.
void check_draws(int draws);

struct StageDiagnostics {
  int64_t delay = 0;  // the longest, once the pipeline is full
  // Empty if no update changes any weight, as with a learning rate of 0.
  std::optional<double> cosine;  // between the update made of the late gradient and that of a current one; their mean
  std::optional<double> oscillation;  // 1 - |sum of updates| / sum of |update|: 0 all in one direction, 1 to and fro
};

struct HessianNorms {
  double own = 0;          // in the weights' own coordinates
  double rotated = 0;      // in the coordinates of the run's bases, or, if it has none, of bases from fresh gradients
  bool own_bases = false;  // whether these are the run's bases
};

struct Diagnostics {
  int64_t step = 0;
  int64_t parameters = 0;  // in the matrices that basis rotation rotates; the Hessian is that of these weights
  std::optional<HessianNorms> hessian;  // empty if it was left out
  std::vector<StageDiagnostics> stages;
};

// Continues training from the checkpoint, in fp32, with the run's executor, every stage's longest delay and stashed
// weights. The run is not changed. Throws RunError if a loss or gradient is not finite, and InputError for a run
// without tokens.
Diagnostics diagnose(const TrainedModel& model, const DiagnosticsOptions& options);
std::string to_json(const Diagnostics& diagnostics);

}  // namespace gyre
