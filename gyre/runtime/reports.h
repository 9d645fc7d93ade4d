// Reports from workers to the conductor, and their form as messages.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "gyre/runtime/segment.h"
#include "gyre/runtime/transport/link.h"

namespace gyre {

// Numbers count from the segment's start. Computed values are tensors on the device that computed them; the conductor
// reads them.
struct LossReport {
  int64_t microbatch = 0;
  at::Tensor loss;  // 0-dim
};
struct UpdateReport {
  int stage = 0, shard = 0;
  int64_t window = 0;
  at::Tensor squared_norms;  // (parameters) fp64, of the gradients before clipping
  double norm = 0;           // by which they were clipped; not finite: the update was skipped
};
// The answer to `hold`: the worker takes in nothing until it receives the limit.
struct HeldReport {
  int64_t admitted = 0;  // microbatches below this may have been taken in here
};
// The last report of a worker: its program has ended.
struct FinalReport {
  // What was observed at one replica.
  struct Replica {
    int stage = 0;
    StageSizes sizes;
    std::map<int64_t, int64_t> delay, mismatch;  // value -> microbatches
  };
  WorkerReport worker;
  std::vector<std::map<ActionKind, ActionCost>> costs;  // [stage]
  std::vector<Replica> replicas;
};
using Report = std::variant<LossReport, UpdateReport, HeldReport, FinalReport>;

Message to_message(const Report& report);
Report to_report(const Message& message);

// From the conductor to a worker: take in nothing more, and report what you have taken in.
Message hold_message();
// From the conductor to a worker: leave out everything at or past `limit`.
Message limit_message(int64_t limit);
// The limit; nullopt for hold_message().
std::optional<int64_t> to_limit(const Message& message);

}  // namespace gyre
