#include "gyre/simulate/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/schedule/delay.h"
#include "gyre/schedule/limits.h"

namespace gyre {
namespace {

// The cost model as the timeline asks for it, with a queue on every directed link.
class TimedCosts {
 public:
  TimedCosts(const Schedule& schedule, const CostModel& costs)
      : costs_(costs), free_links_(costs.link == LinkCost{}), links_(static_cast<size_t>(schedule.workers)) {}

  double duration(const Action& action) const { return costs_.duration(action); }

  // Links of one sender are few: a list serves better than a map.
  double arrival(MessageKind kind, int from, int to, int stage, double at) {
    if (free_links_) return at;
    auto& links = links_[from];
    auto link = std::find_if(links.begin(), links.end(), [&](const Link& l) { return l.to == to; });
    if (link == links.end()) link = links.insert(links.end(), {to, 0});
    const double sent =
        std::max(at, link->free_at) + static_cast<double>(costs_.message_bytes(kind, stage)) / costs_.link.bandwidth;
    link->free_at = sent;
    return sent + costs_.link.latency;
  }

  double passing_on(int stage, bool in_parts) const {
    constexpr int64_t kPartBytes = 4 * kReductionPart;
    const int64_t bytes = costs_.message_bytes(MessageKind::Reduce, stage);
    return costs_.link.latency +
           static_cast<double>(in_parts ? std::min(bytes, kPartBytes) : bytes) / costs_.link.bandwidth;
  }

 private:
  struct Link {
    int to;
    double free_at;
  };
  const CostModel& costs_;
  bool free_links_;
  std::vector<std::vector<Link>> links_;  // [from]
};

// The largest delay and mismatch of any stage. They show in a schedule's first repetitions; a short run may have less.
void find_delays(const Schedule& schedule, Simulation& simulation) {
  if (simulation.microbatches < representative_microbatches(schedule)) {
    const DelayAnalysis delays = analyse_delays(schedule, simulation.microbatches);
    simulation.max_delay = delays.max_delay;
    simulation.max_mismatch = delays.max_mismatch;
  } else {
    const LongestDelays longest = longest_delays(schedule);
    simulation.max_delay = *std::max_element(longest.delay.begin(), longest.delay.end());
    simulation.max_mismatch = *std::max_element(longest.mismatch.begin(), longest.mismatch.end());
  }
}

// The time is linear in actions, and a trace keeps each: a run that would take hours is refused at once.
void check_length(const Schedule& schedule, const SimulationOptions& options) {
  const int64_t most = options.trace ? kMostTraced : kMostSteps;
  const int64_t actions = count_actions(schedule, options.microbatches);
  if (actions <= most) return;
  throw InputError(fmt::format(
      "{} microbatches of schedule {} on {} stages are {} actions, and at most {} can be {}; give fewer microbatches",
      options.microbatches, schedule.name, schedule.stages,
      actions == kUnlimited ? "very many" : fmt::format("{}", actions), most, options.trace ? "traced" : "simulated"));
}

}  // namespace

double Simulation::utilisation() const {
  double sum = 0;
  for (double seconds : busy) sum += seconds;
  return makespan > 0 ? sum / (makespan * static_cast<double>(busy.size())) : 0;
}

Simulation simulate(const Schedule& schedule, const CostModel& costs, const SimulationOptions& options) {
  check_costs(costs, schedule);
  check_length(schedule, options);
  if (options.microbatches < 1 || options.microbatches % schedule.window != 0) {
    const int64_t below = std::max<int64_t>(0, options.microbatches) / schedule.window * schedule.window;
    throw InputError(fmt::format("{} microbatches are no multiple of the window, {}; simulate {}{}",
                                 options.microbatches, schedule.window, below > 0 ? fmt::format("{} or ", below) : "",
                                 below + schedule.window));
  }
  Simulation simulation;
  simulation.schedule = schedule.name;
  simulation.stages = schedule.stages;
  simulation.pipelines = schedule.pipelines;
  simulation.microbatches = options.microbatches;
  simulation.window = schedule.window;
  simulation.busy.resize(schedule.workers);
  if (options.trace) simulation.trace.resize(schedule.workers);

  TimedCosts timed(schedule, costs);
  const auto visit = [&](int worker, const Action& action, double start, double end) {
    simulation.busy[worker] += end - start;
    if (options.trace) simulation.trace[worker].push_back({action, start, end});
  };
  simulation.makespan = Timeline(schedule, options.microbatches, timed, visit).run();

  if (!schedule.forward_only) find_delays(schedule, simulation);
  simulation.memory = peak_memory(schedule, costs, schedule.weights);
  if (simulation.makespan > 0) {
    simulation.tokens_per_time = static_cast<double>(options.microbatches) *
                                 static_cast<double>(costs.tokens_per_microbatch) / simulation.makespan;
  }
  return simulation;
}

std::string to_json(const Simulation& s) {
  nlohmann::ordered_json json = {
      {"schedule", s.schedule},
      {"stages", s.stages},
      {"pipelines", s.pipelines},
      {"microbatches", s.microbatches},
      {"window", s.window},
      {"makespan", s.makespan},
      {"utilisation", s.utilisation()},
      {"bubble_fraction", 1 - s.utilisation()},
      {"microbatches_per_time", s.makespan > 0 ? static_cast<double>(s.microbatches) / s.makespan : 0},
      {"max_delay", s.max_delay},
      {"max_mismatch", s.max_mismatch}};
  if (s.tokens_per_time > 0) json["tokens_per_time"] = s.tokens_per_time;
  json["peak_memory_bytes"] = nlohmann::ordered_json::array();
  json["workers"] = nlohmann::ordered_json::array();
  for (size_t worker = 0; worker < s.busy.size(); ++worker) {
    json["peak_memory_bytes"].push_back(s.memory[worker].total());
    json["workers"].push_back({{"busy", s.busy[worker]}, {"idle", s.makespan - s.busy[worker]}});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);  // a file's name may be no UTF-8
}

std::string to_text(const Simulation& s) {
  std::string text = fmt::format(
      "{}: {} stages, {} pipeline{}, {} microbatches in windows of {}\n"
      "makespan     {:.6g}\nutilisation  {:.4f} (bubble {:.4f})\nthroughput   {:.6g} microbatches per unit of time\n",
      s.schedule, s.stages, s.pipelines, s.pipelines == 1 ? "" : "s", s.microbatches, s.window, s.makespan,
      s.utilisation(), 1 - s.utilisation(), static_cast<double>(s.microbatches) / s.makespan);
  if (s.tokens_per_time > 0) text += fmt::format("             {} tokens/s\n", human_count(s.tokens_per_time));
  text += fmt::format("max delay    {} updates\nmax mismatch {} updates\n", s.max_delay, s.max_mismatch);
  constexpr size_t kMostRows = 16;
  const bool has_memory = std::any_of(s.memory.begin(), s.memory.end(), [](const auto& m) { return m.total() > 0; });
  text += has_memory ? "worker        busy        idle    peak memory\n" : "worker        busy        idle\n";
  for (size_t worker = 0; worker < s.busy.size() && worker < kMostRows; ++worker) {
    text += fmt::format("{:<6} {:>11.6g} {:>11.6g}", worker, s.busy[worker], s.makespan - s.busy[worker]);
    if (has_memory) text += fmt::format(" {:>14}", human_bytes(static_cast<double>(s.memory[worker].total())));
    text += "\n";
  }
  if (s.busy.size() > kMostRows) text += fmt::format("... and {} more workers\n", s.busy.size() - kMostRows);
  return text;
}

}  // namespace gyre
