#include "gyre/plan/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

  // The least possible cost of a cut's costliest stage. Takes time in proportion to layers x stages.
  double min_max_cost() const {
    // best[l]: this cost for the first l layers, cut into the number of stages handled so far.
    std::vector<double> best(layers_ + 1, kInfinity);
    best[0] = 0;
    for (int stage = 0; stage < stages_; ++stage) {
      std::vector<double> next(layers_ + 1, kInfinity);
      // Costs are not negative: the later a stage begins, the less it costs, and the more the stages before it. So the
      // best begin is where one gets larger than the other, which is never earlier for a later end.
      int begin = stage;
      for (int end = stage + 1; end <= layers_; ++end) {
        const auto costliest = [&](int from) { return std::max(best[from], cost(from, end)); };
        while (begin + 1 < end && costliest(begin + 1) <= costliest(begin)) ++begin;
        next[end] = costliest(begin);
      }
      best = std::move(next);
    }
    return best[layers_];
  }

  // Among the cuts whose stages cost at most `limit`: the one with the least late work, then the least sum of squares.
  // Of equal ones, that whose last stage has most layers, and so on for the stages before.
  std::vector<LayerRange> cut(double limit, std::span<const double> delays) const {
    struct Best {
      double late = kInfinity, squares = kInfinity;
      int begin = -1;  // first layer of the last stage; -1: there is no such cut
    };
    // best[s][l]: the first l layers, cut into s stages.
    std::vector<std::vector<Best>> best(stages_ + 1, std::vector<Best>(layers_ + 1));
    best[0][0] = {0, 0, 0};
    const std::vector<int> first_ends = earliest_ends(limit);
    int last_end = 0;  // no cut into the stages handled so far ends later
    for (int stage = 0; stage < stages_; ++stage) {
      const double delay = delays.empty() ? 0 : delays[stage];
      const int last_begin = last_end;
      for (int end = first_ends[stage]; end <= layers_; ++end) {
        Best& best_cut = best[stage + 1][end];
        for (int begin = std::min(last_begin, end - 1); begin >= stage; --begin) {
          const double work = cost(begin, end);
          if (work > limit) break;
          const Best& rest = best[stage][begin];
          if (rest.begin < 0) continue;
          const Best found{rest.late + work * delay, rest.squares + work * work, begin};
          if (std::tie(found.late, found.squares) <= std::tie(best_cut.late, best_cut.squares)) best_cut = found;
        }
        if (best_cut.begin < 0) break;
        last_end = end;
      }
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

  // [stage]: where it ends at the earliest if the stages after it cost at most `limit` each.
  std::vector<int> earliest_ends(double limit) const {
    std::vector<int> ends(stages_, layers_);
    for (int stage = stages_ - 1; stage > 0; --stage) {
      int begin = ends[stage] - 1;
      while (begin > stage && cost(begin - 1, ends[stage]) <= limit) --begin;
      ends[stage - 1] = begin;
    }
    return ends;
  }

  int layers_, stages_;
  std::vector<double> before_;  // prefix sums: total cost of the layers before each
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
  for (size_t layer = 0; layer < costs.size(); ++layer) {
    if (costs[layer] >= 0 && std::isfinite(costs[layer])) continue;
    throw InputError(fmt::format("the cost of layer {} is {}; give a finite number, 0 or more", layer, costs[layer]));
  }
  if (!delays.empty() && delays.size() != static_cast<size_t>(stages)) {
    throw InputError(fmt::format("{} delays for {} stages; give one for each", delays.size(), stages));
  }
  if (!std::ranges::all_of(delays, [](double delay) { return std::isfinite(delay); })) {
    throw InputError("a delay is not finite");
  }
  const Partition partition(costs, stages);
  return partition.cut(partition.min_max_cost(), delays);
}

std::vector<LayerRange> partition_by_cost(std::span<const double> costs, const Schedule& schedule) {
  if (schedule.has_flush() || holds_several_stages(schedule)) return partition_by_cost(costs, schedule.stages);
  std::vector<double> delays = mean_delays(schedule);
  // A delay common to all stages makes no difference between cuts, except for rounding, so it is subtracted.
  const double common = *std::ranges::min_element(delays);
  for (double& delay : delays) delay -= common;
  return partition_by_cost(costs, schedule.stages, delays);
}

}  // namespace gyre
