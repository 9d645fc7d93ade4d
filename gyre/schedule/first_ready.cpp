#include "gyre/schedule/first_ready.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>
#include <tuple>

namespace gyre {
namespace {

// Ordered as the rule says.
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

}  // namespace

int64_t backward_ticks(double tb_over_tf) {
  return std::llround(tb_over_tf * static_cast<double>(kForwardTicks));
}

std::vector<std::vector<Action>> first_ready_order(const std::vector<std::vector<int>>& placement, int workers,
                                                   int64_t per_pipeline, int64_t intake, int64_t forward_ticks,
                                                   int64_t backward_ticks, ConflictRule rule) {
  const int pipelines = static_cast<int>(placement.size());
  const int stages = static_cast<int>(placement[0].size());
  std::vector<std::vector<Action>> order(workers);
  std::vector<Earliest<Ready>> waiting(workers);
  std::vector<bool> busy(workers);
  // Everything of one kind takes as long, so what began first ends first.
  std::deque<Running> forwards, backwards;
  std::vector<int> touched;  // workers that became free at this moment or have something new to do
  int64_t now = 0;

  std::vector<int64_t> admitted(pipelines);
  const auto make_ready = [&](bool is_forward, int64_t index, int p, int stage) {
    const int64_t since = rule == ConflictRule::BackwardFirst && !is_forward ? -1 : now;
    const int worker = placement[p][stage];
    waiting[worker].push({since, is_forward, index, p, stage});
    touched.push_back(worker);
  };
  const auto admit = [&](int p) {
    if (admitted[p] < per_pipeline) make_ready(true, admitted[p]++, p, 0);
  };
  const auto start_next = [&](int worker) {
    if (busy[worker] || waiting[worker].empty()) return;
    const Ready task = waiting[worker].top();
    waiting[worker].pop();
    busy[worker] = true;
    order[worker].push_back({task.is_forward ? ActionKind::Forward : ActionKind::Backward, task.pipeline, task.stage,
                             task.index * pipelines + task.pipeline});
    if (task.is_forward) {
      forwards.push_back({now + forward_ticks, worker, task});
    } else {
      backwards.push_back({now + backward_ticks, worker, task});
    }
  };
  const auto finish = [&](const Ready& task) {
    const auto& [since, is_forward, index, p, stage] = task;
    if (is_forward && stage + 1 < stages) {
      make_ready(true, index, p, stage + 1);
    } else if (is_forward) {
      make_ready(false, index, p, stage);
    } else if (stage > 0) {
      make_ready(false, index, p, stage - 1);
    } else {
      admit(p);
    }
  };

  for (int p = 0; p < pipelines; ++p) {
    for (int64_t i = 0; i < intake; ++i) admit(p);
  }
  const auto finish_all = [&](std::deque<Running>& running) {
    for (; !running.empty() && running.front().until == now; running.pop_front()) {
      busy[running.front().worker] = false;
      touched.push_back(running.front().worker);
      finish(running.front().task);
    }
  };
  const auto start_all = [&] {
    for (const int worker : touched) start_next(worker);
    touched.clear();
  };
  start_all();
  while (!forwards.empty() || !backwards.empty()) {
    now = std::min(forwards.empty() ? backwards.front().until : forwards.front().until,
                   backwards.empty() ? forwards.front().until : backwards.front().until);
    // All that ends now is known before anything new starts.
    finish_all(forwards);
    finish_all(backwards);
    start_all();
  }
  return order;
}

}  // namespace gyre
