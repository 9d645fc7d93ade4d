#include "gyre/schedule/first_ready.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>
#include <utility>

namespace gyre {
namespace {

// A task that is ready. The order of the members is the order of priority: ready earlier first, then the tie rules.
struct Ready {
  int64_t since;
  bool is_forward;
  int64_t index;  // within the pipeline
  int pipeline;
  int stage;
  auto operator<=>(const Ready&) const = default;
};
struct Running {
  int64_t until;
  int worker;
  Ready task;
};
template <typename T>
using Earliest = std::priority_queue<T, std::vector<T>, std::greater<>>;

// The event simulation, which steps from one end of an action to the next.
class Run {
 public:
  Run(const std::vector<std::vector<int>>& placement, int workers, int64_t per_pipeline, int64_t forward_ticks,
      int64_t backward_ticks)
      : placement_(placement),
        pipelines_(static_cast<int>(placement.size())),
        stages_(static_cast<int>(placement[0].size())),
        per_pipeline_(per_pipeline),
        forward_ticks_(forward_ticks),
        backward_ticks_(backward_ticks),
        order_(workers),
        waiting_(workers),
        busy_(workers),
        admitted_(pipelines_) {}

  std::vector<std::vector<Action>> order(int64_t intake) {
    for (int p = 0; p < pipelines_; ++p) {
      for (int64_t i = 0; i < intake; ++i) admit(p);
    }
    start_all();
    while (!forwards_.empty() || !backwards_.empty()) {
      now_ = next_end();
      // Everything that ends now is processed before anything new starts.
      finish_all(forwards_);
      finish_all(backwards_);
      start_all();
    }
    return std::move(order_);
  }

 private:
  // The pipeline takes in its next microbatch, if it has one left.
  void admit(int p) {
    if (admitted_[p] < per_pipeline_) make_ready(true, admitted_[p]++, p, 0);
  }

  void make_ready(bool is_forward, int64_t index, int p, int stage) {
    const int worker = placement_[p][stage];
    waiting_[worker].push({now_, is_forward, index, p, stage});
    touched_.push_back(worker);
  }

  void start_all() {
    for (const int worker : touched_) start_next(worker);
    touched_.clear();
  }

  void start_next(int worker) {
    if (busy_[worker] || waiting_[worker].empty()) return;
    const Ready task = waiting_[worker].top();
    waiting_[worker].pop();
    busy_[worker] = true;
    order_[worker].push_back({task.is_forward ? ActionKind::Forward : ActionKind::Backward, task.pipeline, task.stage,
                              task.index * pipelines_ + task.pipeline});
    if (task.is_forward) {
      forwards_.push_back({now_ + forward_ticks_, worker, task});
    } else {
      backwards_.push_back({now_ + backward_ticks_, worker, task});
    }
  }

  int64_t next_end() const {
    if (forwards_.empty()) return backwards_.front().until;
    if (backwards_.empty()) return forwards_.front().until;
    return std::min(forwards_.front().until, backwards_.front().until);
  }

  void finish_all(std::deque<Running>& running) {
    for (; !running.empty() && running.front().until == now_; running.pop_front()) {
      const auto& [until, worker, task] = running.front();
      busy_[worker] = false;
      touched_.push_back(worker);
      make_next_ready(task);
    }
  }

  // Makes ready what the microbatch does next; if it is through, admits the pipeline's next microbatch.
  void make_next_ready(const Ready& task) {
    const auto& [since, is_forward, index, p, stage] = task;
    if (is_forward && stage + 1 < stages_) {
      make_ready(true, index, p, stage + 1);
    } else if (is_forward) {
      make_ready(false, index, p, stage);
    } else if (stage > 0) {
      make_ready(false, index, p, stage - 1);
    } else {
      admit(p);
    }
  }

  const std::vector<std::vector<int>>& placement_;
  int pipelines_, stages_;
  int64_t per_pipeline_, forward_ticks_, backward_ticks_;
  int64_t now_ = 0;
  std::vector<std::vector<Action>> order_;    // [worker]: what it has started
  std::vector<Earliest<Ready>> waiting_;      // [worker]
  std::vector<bool> busy_;                    // [worker]
  std::deque<Running> forwards_, backwards_;  // all of one kind take equally long: first started, first finished
  std::vector<int> touched_;                  // workers that became free now, or have something new to do
  std::vector<int64_t> admitted_;             // [pipeline]: microbatches admitted so far
};

}  // namespace

int64_t backward_ticks(double tb_over_tf) {
  return std::llround(tb_over_tf * static_cast<double>(kForwardTicks));
}

std::vector<std::vector<Action>> first_ready_order(const std::vector<std::vector<int>>& placement, int workers,
                                                   int64_t per_pipeline, int64_t intake, int64_t forward_ticks,
                                                   int64_t backward_ticks) {
  return Run(placement, workers, per_pipeline, forward_ticks, backward_ticks).order(intake);
}

}  // namespace gyre
