// What the replicas and the owners of one worker share while it runs a segment. Only the worker's own thread is in
// here, but for `status`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "gyre/runtime/runtime_options.h"
#include "gyre/runtime/segment.h"
#include "gyre/runtime/transport/link.h"
#include "gyre/runtime/worker_status.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/reduction_chains.h"
#include "gyre/tensors/device.h"

namespace gyre {

// The number of the message with a segment's first version; the others have their window's.
inline constexpr int64_t kFirstVersion = -1;

// Which microbatches first stages take in.
struct Admission {
  int64_t admitted = 0;  // microbatches below this may have been taken in here
  bool holding = false;  // takes in nothing until the limit has come
};

struct WorkerContext {
  // `numbers` are those of segment.schedule. All but the device outlive it.
  WorkerContext(int worker, at::Device its_device, const RuntimeOptions& its_options, const Segment& its_segment,
                const ReplicaNumbers& numbers, Sender& to_conductor)
      : options(its_options),
        segment(its_segment),
        device(its_device),
        reports(to_conductor),
        chains(schedule()),
        analysis(schedule(), numbers, worker),
        status(schedule()) {}

  const Schedule& schedule() const { return *segment.schedule; }
  int64_t window_of(const Action& action) const { return action.microbatch / schedule().window; }

  // The version that the weights have must be the one that the schedule's analysis says, or the run is not the one that
  // was simulated: RunError. Both count from the segment's start. Call it once for each action, when it is performed.
  int64_t checked_version(const Action& action, int64_t found);

  const RuntimeOptions& options;
  const Segment& segment;
  at::Device device;
  Sender& reports;
  ReductionChains chains;
  VersionTracker analysis;
  Admission admission;
  PublishedStatus status;
  // When the input of the action came, if another process sent it.
  std::optional<std::chrono::steady_clock::time_point> input_came;
  bool served = false;  // this step did something that others may wait for, besides the action
};

}  // namespace gyre
