// What the replicas and owners of one worker share while it runs a segment. Only the worker's own thread uses it,
// except for `status`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "gyre/runtime/actions_ahead.h"
#include "gyre/runtime/published_status.h"
#include "gyre/runtime/runtime_options.h"
#include "gyre/runtime/segment.h"
#include "gyre/runtime/transport/link.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/reduction_chains.h"
#include "gyre/tensors/device.h"

namespace gyre {

// The number of the message with a segment's first version; messages with later versions have their window's number.
inline constexpr int64_t kFirstVersion = -1;

// Which microbatches the worker's first stages take in.
struct Admission {
  int64_t admitted = 0;  // microbatches below this may have been taken in here
  bool holding = false;  // nothing is taken in until the limit has come
};

struct WorkerContext {
  // `numbers` must be made from segment.schedule. All arguments but the device must outlive it.
  WorkerContext(int worker, at::Device its_device, const RuntimeOptions& its_options, const Segment& its_segment,
                const ReplicaNumbers& numbers)
      : options(its_options),
        segment(its_segment),
        device(its_device),
        ahead(its_device),
        chains(schedule()),
        analysis(schedule(), numbers, worker),
        status(schedule()) {}

  const Schedule& schedule() const { return *segment.schedule; }
  int64_t window_of(const Action& action) const { return action.microbatch / schedule().window; }
  // A message that has come for the current action, with its tensors on the device.
  std::optional<Message> arrived(std::optional<Message> message) {
    message = arrived_on(device, std::move(message));
    if (message) ahead.begin();
    return message;
  }

  // Throws RunError if the version found is not the one that the schedule's analysis says: the run is then not the one
  // that was simulated. Otherwise returns it. Both count from the segment's start. Call it once for each action, when
  // it is performed.
  int64_t checked_version(const Action& action, int64_t found);

  const RuntimeOptions& options;
  const Segment& segment;
  at::Device device;
  ActionsAhead ahead;
  ReductionChains chains;
  VersionTracker analysis;
  Admission admission;
  PublishedStatus status;
  // When the action's input came, if another process sent it.
  std::optional<std::chrono::steady_clock::time_point> input_came;
  // What the action has to report. The worker sends it when its device has done the action.
  std::optional<Message> report;
  bool served = false;  // this step did something, besides the action, that others may wait for
};

}  // namespace gyre
