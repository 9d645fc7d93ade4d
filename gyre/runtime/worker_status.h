// What a worker is doing, for whoever asks from another thread, and what an action waits for, in words.
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

// "the activation of 1F17 from worker 1".
std::string describe_needs(const Schedule& schedule, const Action& action);

// [shard]: the workers that own the stage.
std::vector<int> owners_of(const Schedule& schedule, int stage);

// Written by the worker, read by any thread.
class PublishedStatus {
 public:
  explicit PublishedStatus(const Schedule& schedule) : schedule_(schedule) {}

  // The action that is next, or none: the program has ended.
  void set_action(const std::optional<Action>& action);
  // A stage here has made a gradient that is late by `delay` updates.
  void add_delay(int stage, int64_t delay);

  // What it is at, what that needs, and the delays; not what is in its links, nor whether and how long it waits.
  WorkerStatus read() const;

 private:
  const Schedule& schedule_;
  mutable std::mutex mutex_;
  std::optional<Action> action_;
  std::map<int, WorkerStatus::Delays> delays_;  // by stage
};

}  // namespace gyre
