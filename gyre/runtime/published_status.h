// What a worker is doing, readable from any thread, and what an action waits for, as text.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// What the action needs, as text: "the activation of 1F17 from worker 1".
std::string describe_needs(const Schedule& schedule, const Action& action);

// [shard]: the workers that own the stage.
std::vector<int> owners_of(const Schedule& schedule, int stage);

// Written by the worker's thread; any thread may read it.
class PublishedStatus {
 public:
  explicit PublishedStatus(const Schedule& schedule) : schedule_(schedule) {}

  // The next action; none once the program has ended.
  void set_action(const std::optional<Action>& action);
  // This worker computed a gradient of the stage that is late by `delay` updates.
  void add_delay(int stage, int64_t delay);

  // Fills in the current action, its needs, and the delays. Counts of waiting messages and times of waiting are left to
  // the caller.
  WorkerStatus read() const;

 private:
  const Schedule& schedule_;
  mutable std::mutex mutex_;
  std::optional<Action> action_;
  std::map<int, WorkerStatus::Delays> delays_;  // by stage
};

}  // namespace gyre
