// Drain points: the updates after which the pipeline empties, so that state is weights, optimizer and counters alone.
#pragma once

#include <cstdint>
#include <vector>

#include "gyre/config/settings.h"

namespace gyre {

struct DrainPlan {
  int64_t updates = 0;           // of the whole run: the last drain point
  int64_t eval_every = 0;        // 0: never
  int64_t checkpoint_every = 0;  // 0: never
  std::vector<int64_t> extra;    // asked for in the configuration, or recorded by an interrupted run

  DrainPlan() = default;
  // Those that the configuration plans.
  explicit DrainPlan(const RunSettings& run);

  // The first drain point after `done` updates (done < updates).
  int64_t next(int64_t done) const;
  // Whether a drain after `done` updates is planned; 0, the beginning of the run, counts as one.
  bool contains(int64_t done) const { return done == 0 || next(done - 1) == done; }
  // The number of drain points, the end of the run included. Takes no longer for a longer run.
  int64_t count() const;
  // What is due once `done` updates are made. At the end of the run both are, an evaluation only if eval_every is not
  // 0.
  bool evaluates_at(int64_t done) const { return due(done, eval_every); }
  bool checkpoints_at(int64_t done) const { return done == updates || due(done, checkpoint_every); }

 private:
  bool due(int64_t done, int64_t every) const { return every > 0 && (done == updates || done % every == 0); }
};

}  // namespace gyre
