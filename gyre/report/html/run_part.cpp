#include "gyre/report/html/run_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "gyre/config/config.h"
#include "gyre/config/schedule_options.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_text.h"
#include "gyre/core/text.h"
#include "gyre/report/trace.h"
#include "gyre/schedule/delay.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kSimulatedWindows = 200;                      // for the predicted speed; a timeline has fewer
constexpr int64_t kMaxSimulated = 2'000'000, kMaxDrawn = 4000;  // actions

// The same number to a float's precision, with as few digits as that takes: more cannot be seen in a chart.
double short_number(double value) {
  const double size = std::abs(value);
  if (!(size >= std::numeric_limits<float>::min() && size <= std::numeric_limits<float>::max())) return value;
  std::array<char, 32> text{};
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value)).ptr;
  std::from_chars(text.data(), end, value);
  return value;
}

Json curve_json(const RunCurve& curve) {
  Json json = {{"name", curve.name},
               {"step", Json::array()},
               {"tokens", Json::array()},
               {"seconds", Json::array()},
               {"value", Json::array()}};
  for (const CurvePoint& point : curve.points) {
    json["step"].push_back(point.step);
    json["tokens"].push_back(point.tokens);
    json["seconds"].push_back(short_number(point.seconds));
    json["value"].push_back(short_number(point.value));
  }
  return json;
}

Json histogram_json(const std::map<int64_t, int64_t>& histogram) {
  Json json = Json::array();
  for (const auto& [delay, count] : histogram) json.push_back({delay, count});
  return json;
}

Json end_json(const MetricsEnd& end) {
  return {{"status", end.status},
          {"tokens_per_second", json_number(end.tokens_per_second)},
          {"bubble_fraction", json_number(end.bubble_fraction)}};
}

Json totals_json(const RunTotals& totals) {
  return {{"tokens_per_second", json_number(totals.tokens_per_second)},
          {"bubble_fraction", json_number(totals.bubble_fraction)},
          {"seconds", totals.seconds}};
}

Json memory_json(const WorkerMemory& memory) {
  return {{"weights", memory.weights},     {"gradients", memory.gradients},     {"received", memory.received},
          {"optimizer", memory.optimizer}, {"activations", memory.activations}, {"passing", memory.passing}};
}

Json costs_json(const CostModel& costs, const Schedule& schedule) {
  Json json = Json::array();
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const StageCost& cost = costs.stage(stage);
    json.push_back({{"forward", cost.forward},
                    {"backward", cost.backward},
                    {"backward_input", cost.backward_input},
                    {"backward_weights", cost.backward_weights},
                    {"update", cost.update},
                    {"adopt", cost.adopt}});
  }
  return json;
}

// The number of microbatches in `windows` windows, or in fewer, so that there are about `max_actions` actions at most.
int64_t microbatches_of(const Schedule& schedule, int64_t windows, int64_t max_actions) {
  const int64_t actions = count_actions(schedule, windows * schedule.window);
  if (actions > max_actions) windows = std::max<int64_t>(1, windows * max_actions / std::max<int64_t>(1, actions));
  return windows * schedule.window;
}

void add_prediction(const CostModel& costs, const Config& config, const Schedule& schedule, RunPart& part) {
  check_costs(costs, schedule);
  const Simulation simulation =
      simulate(schedule, costs, {.microbatches = microbatches_of(schedule, kSimulatedWindows, kMaxSimulated)});
  Json memory = Json::array();
  for (const WorkerMemory& worker : peak_memory(schedule, costs, weight_policy(config, schedule))) {
    memory.push_back(memory_json(worker));
  }
  part.page["memory"] = std::move(memory);
  part.page["costs"] = costs_json(costs, schedule);
  part.page["predicted"] = {{"tokens_per_second", simulation.tokens_per_time},
                            {"bubble_fraction", 1 - simulation.utilisation()}};
  const Simulation drawn =
      simulate(schedule, costs,
               {.microbatches = microbatches_of(schedule, std::max<int64_t>(4, kSimulatedWindows / 10), kMaxDrawn),
                .trace = true});
  part.simulated = parse_trace(trace_text(schedule, drawn.trace), "simulation");
}

// Why costs are not those of such a run, or "". They are of the last session that ended; the one that goes on, or was
// killed, may have other stages or microbatches.
std::string misfit(const CostModel& costs, const Config& config, const Schedule& schedule) {
  const int64_t tokens = config.pipeline.microbatch * config.model.context;
  if (std::ssize(costs.stages) == schedule.stages && costs.tokens_per_microbatch == tokens) return "";
  const auto described = [](int64_t stages, int64_t tokens_per_microbatch) {
    return fmt::format("{} and microbatches of {}", counted(stages, "stage"), counted(tokens_per_microbatch, "token"));
  };
  return fmt::format("its costs.json is of an earlier session, with {}, and the run now has {}",
                     described(std::ssize(costs.stages), costs.tokens_per_microbatch),
                     described(schedule.stages, tokens));
}

// Adds what costs.json predicts, or returns why nothing is predicted.
std::string predict(const fs::path& path, const Config& config, const Schedule& schedule, RunPart& part) {
  if (!is_there(path)) return "it has no costs.json, which a run writes at its end";
  try {
    const CostModel costs = load_costs(path);
    std::string fault = misfit(costs, config, schedule);
    if (fault.empty()) add_prediction(costs, config, schedule, part);
    return fault;
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

RunPart run_part(const fs::path& run, const std::string& name, RunCurves curves, std::vector<std::string>& notes) {
  const Config config = load_config(run / "config.toml", {}, Tokens::Optional);
  RunPart part;
  part.page = {{"name", name}, {"path", run.string()}};
  const Json tables = to_json(config);
  for (const auto& [table, keys] : tables.items()) {
    for (const auto& [key, value] : keys.items()) {
      part.page["config"][table][key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  part.page["steps"] = curves.steps;
  part.page["updates"] = config.run.updates;
  part.page["executor"] = config.pipeline.executor;
  part.page["curves"] = Json::array();
  for (const RunCurve& curve : curves.curves) part.page["curves"].push_back(curve_json(curve));
  if (curves.end) part.page["end"] = end_json(*curves.end);
  part.page["totals"] = totals_json(curves.totals);
  if (!curves.peak_resident.empty()) {
    curves.peak_tensors.resize(curves.peak_resident.size());
    part.page["measured_memory"] = {{"tensors", curves.peak_tensors}, {"resident", curves.peak_resident}};
  }
  if (curves.curves.empty()) {
    notes.push_back(fmt::format("{}: no update is recorded yet: there are no curves of it", name));
  }
  try {
    const Schedule schedule = build_schedule(config);
    const DelayAnalysis analysis = analyse_delays(schedule, representative_microbatches(schedule));
    part.page["schedule"] = {{"name", schedule.name},
                             {"stages", schedule.stages},
                             {"workers", schedule.workers},
                             {"pipelines", schedule.pipelines}};
    part.page["weights"] = to_string(weight_policy(config, schedule));
    Json stages = Json::array();
    for (int stage = 0; stage < schedule.stages; ++stage) {
      const auto measured = curves.delays.find(stage);
      stages.push_back(
          {{"delay", histogram_json(measured != curves.delays.end() ? measured->second : analysis.delay[stage])},
           {"measured", measured != curves.delays.end()},
           {"mismatch", reads_latest(weight_policy(config, schedule)) ? histogram_json(analysis.mismatch[stage])
                                                                      : Json::array({{0, 1}})}});
    }
    part.page["stages"] = std::move(stages);
    const std::string fault = predict(run / "costs.json", config, schedule, part);
    const bool is_new = curves.steps == 0 && !is_there(run / "costs.json");
    if (!fault.empty() && !is_new) notes.push_back(fmt::format("{}: nothing is predicted: {}", name, fault));
  } catch (const InputError& error) {
    notes.push_back(fmt::format("{}: its schedule is left out: {}", name, error.what()));
  }
  return part;
}

}  // namespace gyre
