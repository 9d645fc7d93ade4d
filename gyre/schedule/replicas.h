// Numbers the replicas, that is the pairs (pipeline, stage), so that those of one worker have consecutive numbers. Code
// that walks one worker's program stores its data on a replica under this number.
#pragma once

#include <cstddef>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Only for valid schedules: every replica's actions are in the period of its own worker. Within a worker, replicas are
// numbered in the order in which that period first names them.
class ReplicaNumbers {
 public:
  explicit ReplicaNumbers(const Schedule& schedule)
      : stages_(static_cast<size_t>(schedule.stages)),
        places_(static_cast<size_t>(schedule.pipelines) * stages_),
        stage_(places_.size()),
        first_(static_cast<size_t>(schedule.workers) + 1) {
    for (const auto& workers : schedule.placement) {
      for (const int worker : workers) ++first_[static_cast<size_t>(worker) + 1];
    }
    for (size_t worker = 1; worker < first_.size(); ++worker) first_[worker] += first_[worker - 1];
    std::vector<bool> numbered(places_.size());
    for (int worker = 0; worker < schedule.workers; ++worker) {
      size_t next = first_[worker];
      for (const Action& action : schedule.programs[worker].period) {
        const size_t p = place(action.pipeline, action.stage);
        if (action.kind == ActionKind::Update || numbered[p]) continue;
        numbered[p] = true;
        stage_[next] = action.stage;
        places_[p] = {static_cast<unsigned>(next++), worker};
      }
    }
  }

  size_t of(int pipeline, int stage) const { return places_[place(pipeline, stage)].number; }
  int worker(int pipeline, int stage) const { return places_[place(pipeline, stage)].worker; }
  int stage(size_t number) const { return stage_[number]; }

  // The replicas of `worker`: how many there are, and the number of the first.
  size_t count(int worker) const { return first_[static_cast<size_t>(worker) + 1] - first(worker); }
  size_t first(int worker) const { return first_[static_cast<size_t>(worker)]; }

 private:
  size_t place(int pipeline, int stage) const {
    return static_cast<size_t>(pipeline) * stages_ + static_cast<size_t>(stage);
  }

  size_t stages_;
  struct Place {
    unsigned number = 0;
    int worker = 0;
  };
  std::vector<Place> places_;  // [pipeline * stages + stage]
  std::vector<int> stage_;     // [number]
  std::vector<size_t> first_;  // [worker]; one more at the end
};

}  // namespace gyre
