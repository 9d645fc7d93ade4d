#include "gyre/schedule/recompute_groups.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gyre {
namespace {

// Groups of neighbouring layers, and what a microbatch whose backward goes through them holds.
class Division {
 public:
  explicit Division(std::span<const LayerKeeps> layers) : layers_(layers), before_{0} {
    for (const LayerKeeps& layer : layers) before_.push_back(before_.back() + layer.all);
  }

  // As few groups as there can be if the microbatch may hold `most` bytes, or as many as there are layers.
  std::vector<LayerRange> within(int64_t most) const {
    std::vector<LayerRange> groups;
    int64_t inputs = 0;
    for (auto begin = before_.begin(); begin + 1 != before_.end();) {
      const auto end = std::max(begin + 1, std::upper_bound(begin, before_.end(), *begin + most - inputs) - 1);
      groups.push_back({static_cast<int>(begin - before_.begin()), static_cast<int>(end - before_.begin())});
      inputs += input(groups.back());
      begin = end;
    }
    return groups;
  }

  // The inputs of the groups before one, and all that this one saves.
  int64_t peak(const std::vector<LayerRange>& groups) const {
    int64_t inputs = 0, peak = 0;
    for (const LayerRange& group : groups) {
      peak = std::max(peak, inputs + std::max(before_[group.end] - before_[group.begin], input(group)));
      inputs += input(group);
    }
    return peak;
  }

  int64_t inputs(const std::vector<LayerRange>& groups) const {
    int64_t inputs = 0;
    for (const LayerRange& group : groups) inputs += input(group);
    return inputs;
  }

  // The division into at most `count` groups whose microbatch holds least.
  std::vector<LayerRange> least(size_t count) const {
    int64_t too_little = -1, most = before_.back();
    while (most - too_little > 1) {
      const int64_t middle = too_little + (most - too_little) / 2;
      const auto groups = within(middle);
      (groups.size() <= count && peak(groups) <= middle ? most : too_little) = middle;
    }
    return within(most);
  }

 private:
  int64_t input(const LayerRange& group) const { return layers_[group.begin].input; }

  std::span<const LayerKeeps> layers_;
  std::vector<int64_t> before_;  // [layer]: what the layers before it save; all at the end
};

}  // namespace

std::vector<HeldMicrobatches> held_microbatches(const Schedule& schedule) {
  std::vector<HeldMicrobatches> stages(static_cast<size_t>(schedule.stages));
  const auto most = most_in_flight(schedule);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const auto& of_pipeline : most) stages[stage].most = std::max(stages[stage].most, of_pipeline[stage]);
    stages[stage].splits = splits_backward(schedule, static_cast<int>(stage));
  }
  return stages;
}

std::vector<LayerRange> recompute_groups(std::span<const LayerKeeps> layers, const HeldMicrobatches& held) {
  assert(!layers.empty());
  const Division division(layers);
  std::vector<LayerRange> best = {{0, static_cast<int>(layers.size())}};
  if (held.splits) return best;
  const auto needed = [&](const std::vector<LayerRange>& groups) {
    return (held.most - 1) * division.inputs(groups) + division.peak(groups);
  };
  int64_t least = needed(best), peak = division.peak(best);
  // Each round finds the division with the next lower peak, which has more groups, until there is none or the inputs of
  // its groups already take as much as the best division needs.
  while (peak > 0) {
    std::vector<LayerRange> groups = division.within(peak - 1);
    if (division.peak(groups) >= peak || held.most * division.inputs(groups) >= least) break;
    groups = division.least(groups.size());
    peak = division.peak(groups);
    if (needed(groups) < least) {
      least = needed(groups);
      best = std::move(groups);
    }
  }
  return best;
}

}  // namespace gyre
