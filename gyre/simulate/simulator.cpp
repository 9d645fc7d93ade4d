#include "gyre/simulate/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/json_text.h"
#include "gyre/core/text.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/limits.h"
#include "gyre/schedule/timeline.h"
#include "gyre/simulate/link_use.h"

namespace gyre {
namespace {

// The microbatches from one drain to the next, at most.
int64_t longest_stretch(const Schedule& schedule, const SimulationOptions& options) {
  if (options.checkpoint_every == 0) return options.microbatches;
  return std::min(options.checkpoint_every, options.microbatches / schedule.window) * schedule.window;
}

// The largest delay and mismatch of any stage. They occur in a schedule's first repetitions; a short run, or one that
// often drains, may have smaller ones.
void find_delays(const Schedule& schedule, int64_t stretch, Simulation& simulation) {
  if (stretch < representative_microbatches(schedule)) {
    const DelayAnalysis delays = analyse_delays(schedule, stretch);
    simulation.max_delay = delays.max_delay;
    simulation.max_mismatch = delays.max_mismatch;
  } else {
    const LongestDelays longest = longest_delays(schedule);
    simulation.max_delay = *std::max_element(longest.delay.begin(), longest.delay.end());
    simulation.max_mismatch = *std::max_element(longest.mismatch.begin(), longest.mismatch.end());
  }
}

// Time is linear in actions, and a trace keeps each of them, so a run that would take hours is refused at once.
void check_length(const Schedule& schedule, const SimulationOptions& options) {
  const int64_t most = options.trace ? kMostTraced : kMostSteps;
  const int64_t actions = count_actions(schedule, options.microbatches);
  if (actions <= most) return;
  throw InputError(fmt::format(
      "{} of schedule {} on {} are {} actions, and at most {} can be {}; give fewer microbatches",
      counted(options.microbatches, "microbatch"), schedule.name, counted(schedule.stages, "stage"),
      actions == kUnlimited ? "very many" : fmt::format("{}", actions), most, options.trace ? "traced" : "simulated"));
}

// Adds `times` runs of that many microbatches, each from an empty pipeline to an empty one.
void add_stretch(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options,
                 int64_t microbatches, int64_t times, Simulation& simulation) {
  TimedCosts timed(schedule, costs, options.places, options.links, options.free_messages);
  const auto weight = static_cast<double>(times);
  const auto visit = [&](int worker, const Action& action, double start, double end) {
    simulation.busy[worker] += weight * (end - start);
    if (options.trace) simulation.trace[worker].push_back({action, start, end});
    if (options.repetitions == nullptr) return;
    RepetitionTimes& repetitions = *options.repetitions;
    if (repetitions.begins_repetition(worker)) repetitions.end_repetition(worker, timed.shifts_of_links(worker));
    repetitions.end_action(worker, action, end);
  };
  const auto limit = [&] { return options.repetitions == nullptr ? kUnlimited : options.repetitions->limit(); };
  simulation.makespan += weight * Timeline(schedule, microbatches, timed, visit).run(limit);
  if (!options.links) return;
  for (LinkUse use : timed.uses()) {
    for (double& bytes : use.bytes) bytes *= weight;
    use.busy *= weight;
    simulation.links.push_back(use);
  }
}

// Adds up what both stretches have sent over each link.
void merge_links(std::vector<LinkUse>& links) {
  std::vector<LinkUse> merged;
  std::stable_sort(links.begin(), links.end(),
                   [](const LinkUse& a, const LinkUse& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  for (const LinkUse& use : links) {
    if (merged.empty() || std::tie(merged.back().from, merged.back().to) != std::tie(use.from, use.to)) {
      merged.push_back(use);
      continue;
    }
    for (size_t kind = 0; kind < use.bytes.size(); ++kind) merged.back().bytes[kind] += use.bytes[kind];
    merged.back().busy += use.busy;
  }
  links = std::move(merged);
}

void run(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options, Simulation& simulation) {
  if (options.checkpoint_every == 0) return add_stretch(schedule, costs, options, options.microbatches, 1, simulation);
  const int64_t whole = longest_stretch(schedule, options);
  const int64_t rest = options.microbatches % whole;
  simulation.checkpoints = options.microbatches / schedule.window / options.checkpoint_every;
  add_stretch(schedule, costs, options, whole, options.microbatches / whole, simulation);
  if (rest > 0) add_stretch(schedule, costs, options, rest, 1, simulation);
  merge_links(simulation.links);
}

}  // namespace

double checkpoint_stall(const CostModel& costs, const std::vector<WorkerMemory>& memory, const WorkerPlaces* places) {
  if (costs.checkpoint > 0 || places == nullptr) return costs.checkpoint;
  int64_t largest = 0;
  for (const WorkerMemory& worker : memory) largest = std::max(largest, worker.optimizer);
  return static_cast<double>(largest) / places->cluster().settings.snapshot_bandwidth;
}

double Simulation::utilisation() const {
  double sum = 0;
  for (double seconds : busy) sum += seconds;
  return makespan > 0 ? std::min(1.0, sum / (makespan * static_cast<double>(busy.size()))) : 0;
}

double Simulation::per_time(double amount) const {
  return makespan > 0 ? amount / makespan : 0;
}

double Simulation::idle(size_t worker) const {
  return std::max(0.0, makespan - busy[worker]);
}

Simulation simulate(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options) {
  if (schedule.programs.empty()) throw InputError("the schedule has no programs; make one with make_schedule()");
  check_costs(costs, schedule);
  check_length(schedule, options);
  if (options.checkpoint_every < 0) {
    throw InputError(
        fmt::format("a checkpoint every {} updates; give 1 or more, or 0 for none", options.checkpoint_every));
  }
  if (options.microbatches < 1 || options.microbatches % schedule.window != 0) {
    const int64_t below = std::max<int64_t>(0, options.microbatches) / schedule.window * schedule.window;
    throw InputError(fmt::format("a run of {} is no multiple of the window, {}; simulate {}{}",
                                 counted(options.microbatches, "microbatch"), schedule.window,
                                 below > 0 ? fmt::format("{} or ", below) : "", below + schedule.window));
  }
  Simulation simulation;
  simulation.schedule = schedule.name;
  simulation.stages = schedule.stages;
  simulation.pipelines = schedule.pipelines;
  simulation.microbatches = options.microbatches;
  simulation.window = schedule.window;
  simulation.busy.resize(schedule.workers);
  if (options.trace) simulation.trace.resize(schedule.workers);

  run(schedule, costs, options, simulation);
  if (options.repetitions != nullptr) {
    simulation.microbatches = std::min(simulation.microbatches, options.repetitions->limit());
  }
  if (!schedule.forward_only) find_delays(schedule, longest_stretch(schedule, options), simulation);
  simulation.memory = peak_memory(schedule, costs, schedule.weights);
  if (simulation.checkpoints > 0) {
    simulation.checkpoint_stall = checkpoint_stall(costs, simulation.memory, options.places);
    simulation.makespan += static_cast<double>(simulation.checkpoints) * simulation.checkpoint_stall;
  }
  simulation.tokens_per_time = simulation.per_time(static_cast<double>(simulation.microbatches) *
                                                   static_cast<double>(costs.tokens_per_microbatch));
  return simulation;
}

std::string to_json(const Simulation& s, const WorkerPlaces* places) {
  nlohmann::ordered_json json = {{"schedule", s.schedule},
                                 {"stages", s.stages},
                                 {"pipelines", s.pipelines},
                                 {"microbatches", s.microbatches},
                                 {"window", s.window},
                                 {"makespan", s.makespan},
                                 {"utilisation", s.utilisation()},
                                 {"bubble_fraction", 1 - s.utilisation()},
                                 {"microbatches_per_time", s.per_time(static_cast<double>(s.microbatches))},
                                 {"max_delay", s.max_delay},
                                 {"max_mismatch", s.max_mismatch}};
  if (s.tokens_per_time > 0) json["tokens_per_time"] = s.tokens_per_time;
  if (s.checkpoints > 0) {
    json["checkpoints"] = s.checkpoints;
    json["checkpoint_stall"] = s.checkpoint_stall;
  }
  json["peak_memory_bytes"] = nlohmann::ordered_json::array();
  json["workers"] = nlohmann::ordered_json::array();
  for (size_t worker = 0; worker < s.busy.size(); ++worker) {
    json["peak_memory_bytes"].push_back(s.memory[worker].total());
    json["workers"].push_back({{"busy", s.busy[worker]}, {"idle", s.idle(worker)}});
  }
  if (places != nullptr) {
    json["hosts"] = places->hosts();
    json["links"] = nlohmann::ordered_json::array();
    for (const ClassUse& use : use_by_class(s, *places)) json["links"].push_back(to_json(use));
  }
  return json_text(json);
}

std::string to_text(const Simulation& s, const WorkerPlaces* places) {
  std::string text = fmt::format(
      "{}: {}, {}, {} in windows of {}\n"
      "makespan     {:.6g}\nutilisation  {:.4f} (bubble {:.4f})\nthroughput   {:.6g} microbatches per unit of time\n",
      s.schedule, counted(s.stages, "stage"), counted(s.pipelines, "pipeline"), counted(s.microbatches, "microbatch"),
      s.window, s.makespan, s.utilisation(), 1 - s.utilisation(), s.per_time(static_cast<double>(s.microbatches)));
  if (s.tokens_per_time > 0) text += fmt::format("             {} tokens/s\n", human_count(s.tokens_per_time));
  if (s.checkpoints > 0) text += fmt::format("checkpoints  {}, {:.6g} each\n", s.checkpoints, s.checkpoint_stall);
  text += fmt::format("max delay    {}\nmax mismatch {}\n", counted(s.max_delay, "update"),
                      counted(s.max_mismatch, "update"));
  constexpr size_t kMostRows = 16;
  const bool has_memory = std::any_of(s.memory.begin(), s.memory.end(), [](const auto& m) { return m.total() > 0; });
  text += has_memory ? "worker        busy        idle    peak memory\n" : "worker        busy        idle\n";
  for (size_t worker = 0; worker < s.busy.size() && worker < kMostRows; ++worker) {
    text += fmt::format("{:<6} {:>11.6g} {:>11.6g}", worker, s.busy[worker], s.idle(worker));
    if (has_memory) text += fmt::format(" {:>14}", human_bytes(static_cast<double>(s.memory[worker].total())));
    text += "\n";
  }
  if (s.busy.size() > kMostRows) text += fmt::format("... and {} more workers\n", s.busy.size() - kMostRows);
  if (places != nullptr) {
    text += fmt::format("on {}\n", counted(places->hosts(), "host"));
    for (const ClassUse& use : use_by_class(s, *places)) text += fmt::format("{}\n", describe(use));
  }
  return text;
}

}  // namespace gyre
