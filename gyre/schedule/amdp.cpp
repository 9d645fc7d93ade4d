// AMDP (arXiv 2605.29664): several pipelines in complementary directions share the workers. Each takes in at most two
// microbatches at a time (`intake`), so weights never change by more than one update between a microbatch's forward and
// its backward. Gradients of a window are reduced to each stage's owner, which alone has the optimizer; its update and
// the adoption of the new weights by all replicas fall into the next block.
//
// A block is `intake` microbatches of each pipeline, ordered by the first-ready rule. Workers with a first stage begin
// the next block's forwards before the last backward of this one (preloading); how many depends on tb / tf and is found
// by trying. The paper and its code cover depths 4 and 8; complementary directions work for multiples of four. Other
// depths get as many pipelines as fill the workers, all in one direction and evenly spaced round the ring.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/schedule/builder_parts.h"
#include "gyre/schedule/compute_costs.h"
#include "gyre/schedule/first_ready.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/schedule_settings.h"

namespace gyre {
namespace {

struct AmdpOptions : ScheduleOptions, AmdpSettings {};

int pipelines_for_depth(int stages) {
  return (stages + 1) / 2;
}

int64_t block_size_of(const AmdpOptions& options, int pipelines) {
  return options.intake * pipelines;
}

using Placement = std::vector<std::vector<int>>;  // [pipeline][stage] -> worker

// Section 3 of the paper: even pipelines go up from worker 2j, odd ones down from 2j + 1.
Placement complementary_placement(int stages, int pipelines) {
  Placement placement(pipelines, std::vector<int>(stages));
  for (int j = 0; j < pipelines; ++j) {
    for (int i = 0; i < stages; ++i) {
      const int worker = j % 2 == 0 ? 2 * j + i : 2 * j + 1 - i;
      placement[j][i] = (worker % stages + stages) % stages;
    }
  }
  return placement;
}

// All pipelines go up, starting at evenly spaced workers.
Placement ring_placement(int stages, int pipelines) {
  Placement placement(pipelines, std::vector<int>(stages));
  for (int j = 0; j < pipelines; ++j) {
    for (int i = 0; i < stages; ++i) placement[j][i] = (j * stages / pipelines + i) % stages;
  }
  return placement;
}

// A placement indexed by worker. Every pipeline visits every worker once.
struct Hosted {
  explicit Hosted(const Placement& placement)
      : stage(placement[0].size(), std::vector<int>(placement.size())), holds_first_stage(stage.size()) {
    for (size_t p = 0; p < placement.size(); ++p) {
      for (size_t s = 0; s < stage.size(); ++s) stage[static_cast<size_t>(placement[p][s])][p] = static_cast<int>(s);
      holds_first_stage[static_cast<size_t>(placement[p][0])] = true;
    }
  }
  std::vector<std::vector<int>> stage;  // [worker][pipeline]
  std::vector<bool> holds_first_stage;  // [worker]
};

// Where in a block a worker updates and adopts: before the action of the block with this index.
struct VersionChanges {
  std::vector<std::pair<int, size_t>> updates;  // (stage, index) for the stages it owns
  size_t adopts = 0;                            // index; all its replicas adopt at once
};

// Writes one worker's endless sequence of blocks with its updates and adoptions.
class WorkerProgram {
 public:
  // hosted: the worker's stages, by pipeline. preload: 0 for workers without a first stage. changes: null for none.
  WorkerProgram(const Schedule& schedule, const std::vector<int>& hosted, const std::vector<Action>& block,
                int64_t block_size, size_t preload, const VersionChanges* changes)
      : schedule_(schedule),
        hosted_(hosted),
        block_(block),
        block_size_(block_size),
        preload_(std::min(preload, block.size() - 1)),
        changes_(changes) {}

  // One repetition of `shift` microbatches as the prologue and the next as the period, which all later ones repeat.
  Program write() {
    Program program;
    const int64_t blocks = schedule_.shift / block_size_;
    reserve(blocks, program);
    for (int64_t number = 0; number < blocks; ++number) write_block(number, program.prologue);
    for (int64_t number = blocks; number < 2 * blocks; ++number) write_block(number, program.period);
    return program;
  }

 private:
  void write_block(int64_t number, std::vector<Action>& actions) {
    for (size_t i = 0; i <= block_.size(); ++i) {
      if (i == preload_ && held_) {
        actions.push_back(*held_);
        held_.reset();
      }
      change_versions(number, i, actions);
      if (i == block_.size()) return;
      Action action = block_[i];
      action.microbatch += number * block_size_;
      if (preload_ > 0 && i + 1 == block_.size()) {
        held_ = action;
      } else {
        actions.push_back(action);
      }
    }
  }

  // Adds the updates and adoptions that come before the action with index `before`, for the windows whose last
  // microbatch was in the block before.
  void change_versions(int64_t block, size_t before, std::vector<Action>& actions) const {
    if (changes_ == nullptr || block == 0) return;
    const int64_t begin = (block - 1) * block_size_;
    for (int64_t w = begin / schedule_.window; w < (begin + block_size_) / schedule_.window; ++w) {
      for (const auto& [stage, at] : changes_->updates) {
        if (at == before) actions.push_back(update(stage, w));
      }
      if (changes_->adopts != before) continue;
      for (int p = 0; p < schedule_.pipelines; ++p) {
        actions.push_back(adopt(hosted_[static_cast<size_t>(p)], w, p));
      }
    }
  }

  // Reserves the final length: growing by doubling would take twice the memory.
  void reserve(int64_t blocks, Program& program) const {
    const auto computations = static_cast<size_t>(blocks) * block_.size();
    const size_t changes = changes_ == nullptr ? 0
                                               : static_cast<size_t>(schedule_.shift / schedule_.window) *
                                                     (changes_->updates.size() + hosted_.size());
    program.prologue.reserve(computations + changes);
    program.period.reserve(computations + changes);
  }

  const Schedule& schedule_;
  const std::vector<int>& hosted_;
  const std::vector<Action>& block_;
  int64_t block_size_;
  size_t preload_;
  const VersionChanges* changes_;
  std::optional<Action> held_;  // the last backward of the block before, delayed until the preloads are done
};

using BlockOrder = std::vector<std::vector<Action>>;  // [worker]

void write_programs(Schedule& schedule, const Hosted& hosted, const BlockOrder& order, int64_t block_size, int preload,
                    const std::vector<VersionChanges>& changes) {
  for (int worker = 0; worker < schedule.workers; ++worker) {
    const VersionChanges* own = changes.empty() ? nullptr : &changes[worker];
    const size_t own_preload = hosted.holds_first_stage[worker] ? static_cast<size_t>(preload) : 0;
    schedule.programs[worker] =
        WorkerProgram(schedule, hosted.stage[worker], order[worker], block_size, own_preload, own).write();
  }
}

ComputeCosts tick_costs(double tb_over_tf) {
  return {static_cast<double>(kForwardTicks), static_cast<double>(backward_ticks(tb_over_tf)), 0, 0};
}

// The published point at which a worker takes new weights: when all forwards of the block are done. At depth four,
// workers with a first stage take them one forward earlier, after their first backward.
size_t published_adoption(const std::vector<Action>& block, bool first_stage, int stages) {
  const auto is = [](ActionKind kind) { return [kind](const Action& action) { return action.kind == kind; }; };
  if (stages == 4 && first_stage) {
    const auto backward = std::find_if(block.begin(), block.end(), is(ActionKind::Backward));
    return static_cast<size_t>(backward - block.begin()) + 1;
  }
  const auto last_forward = std::find_if(block.rbegin(), block.rend(), is(ActionKind::Forward));
  return static_cast<size_t>(block.rend() - last_forward);
}

// Times in two consecutive blocks of the steady state, from a timeline without updates.
struct BlockTimes {
  std::vector<double> gradients_done;       // [stage], in the first block
  std::vector<std::vector<double>> starts;  // [worker]: of the second block's actions
  bool periodic = false;                    // all actions start later in the second block by the same time
};

// The two blocks are `first` and first + 1. The run has one more block, because a run's last block has no preloads to
// wait for.
BlockTimes block_times(const Schedule& schedule, int64_t block_size, int64_t first, ComputeCosts costs) {
  BlockTimes times;
  times.gradients_done.resize(schedule.stages);
  times.starts.resize(schedule.workers);
  times.periodic = true;
  std::vector<size_t> repeated(schedule.workers);  // actions of the second block so far
  std::optional<double> period;
  const auto record = [&](int worker, const Action& action, double start, double end) {
    const int64_t block = action.microbatch / block_size;
    std::vector<double>& starts = times.starts[worker];  // programs keep the block's order
    if (block == first) {
      starts.push_back(start);
      double& done = times.gradients_done[action.stage];
      if (action.kind == ActionKind::Backward) done = std::max(done, end);
    } else if (block == first + 1) {
      double& known = starts[repeated[worker]++];
      if (!period) period = start - known;
      times.periodic = times.periodic && start - known == *period;
      known = start;
    }
  };
  Timeline(schedule, (first + 3) * block_size, costs, record).run();
  return times;
}

// Places each adoption at its published point or, if the gradients of the block before have not arrived by then in the
// timeline of the schedule without updates, as soon as they have. Places each update as early as that timeline allows
// without waiting. Since everything follows one timeline, there can be no cyclic wait.
std::vector<VersionChanges> version_changes(Schedule schedule, const Hosted& hosted, const BlockOrder& order,
                                            const AmdpOptions& options, int preload) {
  constexpr int64_t kSteady = 6;  // the block by which the steady state is reached
  const int64_t block_size = block_size_of(options, schedule.pipelines);
  schedule.window = schedule.shift = block_size;
  write_programs(schedule, hosted, order, block_size, preload, {});
  const ComputeCosts costs = tick_costs(options.tb_over_tf);
  // Most orders are steady from the start, and simulating blocks of deep pipelines takes long. At most `intake`
  // preloads are forwards of first stages, which wait for no message. Then a block's times follow from those of the
  // block before, and once one block repeats another (exactly, since times are whole ticks), all later ones do.
  const bool follows_from_the_block_before = preload <= options.intake;
  BlockTimes times;
  if (follows_from_the_block_before) times = block_times(schedule, block_size, 1, costs);
  if (!times.periodic) times = block_times(schedule, block_size, kSteady, costs);

  // Index of the block's first action that starts at or after `time` and comes after the worker's preloads.
  const auto not_before = [&](int worker, double time) {
    const std::vector<double>& starts = times.starts[worker];
    const auto first =
        starts.begin() + (hosted.holds_first_stage[worker] ? std::min<std::ptrdiff_t>(preload, std::ssize(starts)) : 0);
    return static_cast<size_t>(std::lower_bound(first, starts.end(), time) - starts.begin());
  };
  std::vector<VersionChanges> changes(schedule.workers);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const int owner = schedule.owner[0][stage];
    changes[owner].updates.emplace_back(stage, not_before(owner, times.gradients_done[stage]));
  }
  for (int worker = 0; worker < schedule.workers; ++worker) {
    double all_done = 0;
    for (const int stage : hosted.stage[worker]) all_done = std::max(all_done, times.gradients_done[stage]);
    const size_t published = published_adoption(order[worker], hosted.holds_first_stage[worker], schedule.stages);
    changes[worker].adopts = std::max(published, not_before(worker, all_done));
  }
  return changes;
}

// Microbatches of a repetition, after which windows and blocks begin together again. Throws InputError that says what
// to lower if the programs (a prologue and a period of that length) would be too long.
int64_t checked_shift(const AmdpOptions& options, int64_t block_size) {
  const int64_t longest = most_actions(options) / (4LL * options.stages);
  const int64_t shift = options.window / std::gcd(options.window, block_size) * block_size;
  if (shift <= longest) return shift;
  const OptionNames& names = options.names;
  if (block_size > longest) {
    throw InputError(
        fmt::format("schedule amdp: on {} stages a block of {} microbatches makes programs of more than {} actions, "
                    "which are held in memory; make {}, {} or {} smaller{}",
                    options.stages, block_size, most_actions(options), names.of("intake"), names.of("pipelines"),
                    names.stages, or_fewer_replicas(options)));
  }
  const int64_t fitting = std::min(longest, options.window) / block_size * block_size;
  throw InputError(fmt::format(
      "schedule amdp: windows of {} and blocks of {} microbatches end together only after {}, which makes programs "
      "of more than {} actions; make {} {}{}",
      options.window, block_size, shift, most_actions(options), names.window, fitting, or_fewer_replicas(options)));
}

Schedule build_with(const AmdpOptions& options, const Placement& placement, int preload) {
  const auto pipelines = static_cast<int>(placement.size());
  const int64_t block_size = block_size_of(options, pipelines);
  const int64_t shift = checked_shift(options, block_size);
  Schedule schedule = one_pipeline(options);
  schedule.weights = WeightPolicy::Latest;
  schedule.pipelines = pipelines;
  schedule.placement = placement;
  schedule.shift = shift;
  const Hosted hosted(placement);
  const BlockOrder order = first_ready_order(placement, schedule.workers, options.intake, options.intake, kForwardTicks,
                                             backward_ticks(options.tb_over_tf));
  write_programs(schedule, hosted, order, block_size, preload,
                 version_changes(schedule, hosted, order, options, preload));
  return schedule;
}

// Time of one block in the steady state, in ticks; infinite if the order deadlocks.
double block_period(const AmdpOptions& options, const Placement& placement, int preload) {
  constexpr int64_t kRepetitions = 4;
  const ComputeCosts costs = tick_costs(options.tb_over_tf);
  try {
    const Schedule schedule = build_with(options, placement, preload);
    return makespan(schedule, 2 * kRepetitions * schedule.shift, costs) -
           makespan(schedule, kRepetitions * schedule.shift, costs);
  } catch (const Deadlock&) {
    return std::numeric_limits<double>::infinity();
  }
}

// The number of pipelines. Throws InputError, which says what would fit, if there are more than stages, if the window
// is shorter than a block, or if the preload is out of range.
int checked_pipelines(const AmdpOptions& options) {
  const OptionNames& names = options.names;
  const int pipelines =
      options.pipelines > 0 ? static_cast<int>(options.pipelines) : pipelines_for_depth(options.stages);
  if (pipelines > options.stages) {
    throw InputError(fmt::format("schedule amdp: {} pipelines on {}; make {} at most {}", pipelines,
                                 counted(options.stages, "stage"), names.of("pipelines"), options.stages));
  }
  const int64_t block_size = block_size_of(options, pipelines);
  if (options.window < block_size) {
    const int64_t fitting = options.window / options.intake;
    throw InputError(
        fmt::format("schedule amdp: a window of {} is less than {} for each of {}; make {} at "
                    "least {}{}",
                    counted(options.window, "microbatch"), options.intake, counted(pipelines, "pipeline"), names.window,
                    block_size, fitting > 0 ? fmt::format(", or {} at most {}", names.of("pipelines"), fitting) : ""));
  }
  // A worker's block is a forward and a backward of each microbatch.
  if (options.preload < -1 || options.preload >= 2 * block_size) {
    throw InputError(fmt::format("schedule amdp: {} is {}; give 0 to {}, or -1 for what suits the ratio",
                                 names.of("preload"), options.preload, 2 * block_size - 1));
  }
  return pipelines;
}

// Whether the placement is the published one; all others are rings.
bool is_complementary(int stages, int pipelines) {
  return stages % 4 == 0 && pipelines % 2 == 0;
}

Placement placement_for(int stages, int pipelines) {
  return is_complementary(stages, pipelines) ? complementary_placement(stages, pipelines)
                                             : ring_placement(stages, pipelines);
}

constexpr int64_t kFewPreloads = 3;

// Preloads to try: a few, and in a ring about as many as a block has microbatches. All that are best, over many depths,
// intakes, numbers of pipelines and ratios, are among these. (With the published placement so many make some blocks
// shorter too, but delays longer on average.)
std::vector<int64_t> preloads_to_try(int64_t block_size, int64_t intake, bool near_block_size) {
  std::vector<int64_t> preloads;
  const auto add = [&](int64_t preload) {
    const int64_t last = preloads.empty() ? -1 : preloads.back();
    if (preload > last && preload < 2 * block_size) preloads.push_back(preload);
  };
  for (int64_t preload = 0; preload <= kFewPreloads; ++preload) add(preload);
  if (!near_block_size) return preloads;
  for (const int64_t more : {1 - intake, int64_t{0}, int64_t{2}}) add(block_size + more);
  return preloads;
}

// The preload with the shortest block period, which depends on tb / tf and on the placement. Very deep pipelines and
// large intakes use the value of a smaller pipeline with the same kind of placement, which is found quickly.
int best_preload(AmdpOptions options, int pipelines, bool few = false) {
  constexpr int kDeepest = 64;
  constexpr int64_t kMostIntake = 64;
  options.intake = std::min(options.intake, kMostIntake);
  const int64_t own_block_size = block_size_of(options, pipelines);
  if (options.stages > kDeepest) {
    const bool full = pipelines == pipelines_for_depth(options.stages);
    options.stages = kDeepest + options.stages % 4;
    pipelines = full ? pipelines_for_depth(options.stages) : std::min(pipelines, kDeepest / 2);
  }
  const Placement placement = placement_for(options.stages, pipelines);
  // The order within a block does not depend on the window, so the shortest window is used to compare.
  const int64_t block_size = options.window = block_size_of(options, pipelines);
  int64_t best = 0;
  double best_period = std::numeric_limits<double>::infinity();
  for (const int64_t preload :
       preloads_to_try(block_size, options.intake, !few && !is_complementary(options.stages, pipelines))) {
    const double period = block_period(options, placement, static_cast<int>(preload));
    if (period < best_period) {
      best = preload;
      best_period = period;
    }
  }
  const bool is_near_block_size = best > kFewPreloads;
  return static_cast<int>(is_near_block_size ? best - block_size + own_block_size : best);
}

Schedule build(const ScheduleOptions& given) {
  check_options(given);
  const AmdpOptions options{given, given.own.get<AmdpSettings>()};
  const int pipelines = checked_pipelines(options);
  checked_shift(options, block_size_of(options, pipelines));
  const Placement placement = placement_for(options.stages, pipelines);
  // Some numbers of preloads make workers wait for each other.
  if (options.preload < 0) {
    try {
      return build_with(options, placement, best_preload(options, pipelines));
    } catch (const Deadlock&) {  // what suits the smaller pipeline may not suit a very deep one
      return build_with(options, placement, best_preload(options, pipelines, /*few=*/true));
    }
  }
  try {
    Schedule schedule = build_with(options, placement, static_cast<int>(options.preload));
    makespan(schedule, representative_microbatches(schedule), tick_costs(options.tb_over_tf));
    return schedule;
  } catch (const Deadlock&) {
    throw InputError(
        fmt::format("schedule amdp: with {} at {} workers wait for each other in a circle; make it smaller",
                    options.names.of("preload"), options.preload));
  }
}

// One block, which is the shortest window allowed.
SuitableWindows windows(const ScheduleOptions& options) {
  const auto settings = options.own.get<AmdpSettings>();
  const int64_t pipelines = settings.pipelines > 0 ? settings.pipelines : pipelines_for_depth(options.stages);
  return {.usual = settings.intake * pipelines};
}

// All numbers of pipelines: fewer than fill the workers are slower but need less memory.
std::vector<OptionTable> variants(int workers, const OptionTable& own) {
  std::vector<OptionTable> tables;
  auto settings = own.get<AmdpSettings>();
  for (settings.pipelines = pipelines_for_depth(workers); settings.pipelines >= 1; --settings.pipelines) {
    tables.emplace_back(settings);
  }
  return tables;
}

}  // namespace

ScheduleKind amdp() {
  return {.name = "amdp",
          .meaning = "several pipelines in complementary directions; no flush, and a delay of one update",
          .build = build,
          .windows = windows,
          .own = AmdpSettings(),
          .variants = variants};
}

}  // namespace gyre
