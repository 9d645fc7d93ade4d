#include "gyre/plan/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>

#include "gyre/core/error.h"
#include "gyre/schedule/delay.h"

namespace gyre {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Partition {
 public:
  Partition(std::span<const double> costs, int stages) : layers_(static_cast<int>(costs.size())), stages_(stages) {
    before_.push_back(0);
    for (const double cost : costs) before_.push_back(before_.back() + cost);
  }

  // What the costliest stage costs in the cut where that is least.
  double least_costliest() const {
    // best[l]: of the first l layers, cut into as many stages as have been looked at.
    std::vector<double> best(layers_ + 1, kInfinity);
    best[0] = 0;
    for (int stage = 0; stage < stages_; ++stage) {
      std::vector<double> next(layers_ + 1, kInfinity);
      for_each_range(
          stage, [&](int begin, int end) { next[end] = std::min(next[end], std::max(best[begin], cost(begin, end))); });
      best = std::move(next);
    }
    return best[layers_];
  }

  // The cut of least late work, then of least squares, of those where no stage costs more than `limit`.
  std::vector<LayerRange> cut(double limit, std::span<const double> delays) const {
    struct Best {
      double late = kInfinity, squares = kInfinity;
      int begin = -1;  // of the last stage
    };
    // best[s][l]: the first l layers, cut into s stages.
    std::vector<std::vector<Best>> best(stages_ + 1, std::vector<Best>(layers_ + 1));
    best[0][0] = {0, 0, -1};
    for (int stage = 0; stage < stages_; ++stage) {
      const double delay = delays.empty() ? 0 : delays[stage];
      for_each_range(stage, [&](int begin, int end) {
        const double work = cost(begin, end);
        if (work > limit) return;
        const Best& rest = best[stage][begin];
        const Best found{rest.late + work * delay, rest.squares + work * work, begin};
        Best& least = best[stage + 1][end];
        if (std::tie(found.late, found.squares) < std::tie(least.late, least.squares)) least = found;
      });
    }
    std::vector<LayerRange> ranges(stages_);
    for (int stage = stages_, end = layers_; stage > 0; --stage) {
      const int begin = best[stage][end].begin;
      ranges[stage - 1] = {begin, end};
      end = begin;
    }
    return ranges;
  }

 private:
  double cost(int begin, int end) const { return before_[end] - before_[begin]; }

  // Those that the stage could hold, with a layer at least for each stage before it.
  template <typename Use>
  void for_each_range(int stage, Use use) const {
    for (int end = stage + 1; end <= layers_; ++end) {
      for (int begin = stage; begin < end; ++begin) use(begin, end);
    }
  }

  int layers_, stages_;
  std::vector<double> before_;  // cost of the layers before each
};

bool holds_several_stages(const Schedule& schedule) {
  std::vector<int> stage_of(schedule.workers, -1);
  for (const auto& workers : schedule.placement) {
    for (int stage = 0; stage < schedule.stages; ++stage) {
      int& held = stage_of[workers[stage]];
      if (held >= 0 && held != stage) return true;
      held = stage;
    }
  }
  return false;
}

}  // namespace

std::vector<LayerRange> partition_by_cost(std::span<const double> costs, int stages, std::span<const double> delays) {
  if (stages < 1 || stages > static_cast<int>(costs.size())) {
    throw InputError(
        fmt::format("{} layers cannot be cut into {} stages; give 1 to {} stages", costs.size(), stages, costs.size()));
  }
  const Partition partition(costs, stages);
  return partition.cut(partition.least_costliest(), delays);
}

std::vector<LayerRange> partition_by_cost(std::span<const double> costs, const Schedule& schedule) {
  if (schedule.has_flush() || holds_several_stages(schedule)) return partition_by_cost(costs, schedule.stages);
  std::vector<double> delays = mean_delays(schedule);
  // What all of them have makes no difference between cuts, but for rounding.
  const double least = *std::ranges::min_element(delays);
  for (double& delay : delays) delay -= least;
  return partition_by_cost(costs, schedule.stages, delays);
}

}  // namespace gyre
