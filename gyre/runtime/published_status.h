// What a worker is doing, readable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "gyre/runtime/need.h"
#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// Written by the worker's thread; any thread may read it.
class PublishedStatus {
 public:
  explicit PublishedStatus(const Schedule& schedule) : schedule_(schedule) {}

  // The next action; none once the program has ended. From here on it waits for nothing.
  void set_action(const std::optional<Action>& action);
  // What the action waits for.
  void set_need(const Need& need);
  // This worker computed a gradient of the stage that is late by `delay` updates.
  void add_delay(int stage, int64_t delay);

  // Fills in the current action, what it waits for, and the delays. Counts of waiting messages and times of waiting are
  // left to the caller.
  WorkerStatus read() const;

 private:
  const Schedule& schedule_;
  mutable std::mutex mutex_;
  std::optional<Action> action_;
  std::optional<Need> need_;
  std::map<int, WorkerStatus::Delays> delays_;  // by stage
};

}  // namespace gyre
