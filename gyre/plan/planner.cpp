#include "gyre/plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/plan/partition.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

// The next window at or after `options.window` that the schedule can serve, if there is one near.
std::optional<Schedule> next_servable(ScheduleOptions& options, std::string& why) {
  const int64_t last = options.window + 4LL * options.stages;
  for (; options.window <= last; ++options.window) {
    try {
      return make_schedule(options);
    } catch (const InputError& error) {
      why = error.what();
    }
  }
  return std::nullopt;
}

PlanRow evaluate(const ScheduleOptions& options, const Schedule& schedule, const CostModel& costs, bool recompute) {
  // The steady state: what twice as many microbatches take more.
  const int64_t n = std::max<int64_t>(4 * schedule.shift, 4LL * schedule.stages / schedule.window * schedule.window);
  const Simulation once = simulate(schedule, costs, {.microbatches = n});
  const Simulation twice = simulate(schedule, costs, {.microbatches = 2 * n});
  const double seconds = twice.makespan - once.makespan;
  double busy = 0;
  for (size_t worker = 0; worker < once.busy.size(); ++worker) busy += twice.busy[worker] - once.busy[worker];
  PlanRow row;
  row.schedule = options;
  row.pipelines = schedule.pipelines;
  row.recompute = recompute;
  row.tokens_per_second = static_cast<double>(n * costs.tokens_per_microbatch) / seconds;
  row.bubble_fraction = 1 - busy / (seconds * static_cast<double>(once.busy.size()));
  for (const WorkerMemory& memory : twice.memory) row.peak_memory = std::max(row.peak_memory, memory.total());
  row.max_delay = twice.max_delay;
  row.max_mismatch = reads_latest(schedule.weights) ? twice.max_mismatch : 0;
  return row;
}

class Planner {
 public:
  Planner(const std::vector<LayerProfile>& layers, const PlanOptions& options) : layers_(layers), options_(options) {}

  Plan run() {
    double forward = 0, backward = 0;
    for (const LayerProfile& layer : layers_) {
      forward += layer.forward;
      backward += layer.backward();
    }
    plan_.tb_over_tf = backward / std::max(forward, 1e-12);
    for (const ScheduleKind& kind : schedule_kinds().all()) add_schedule(kind);
    if (plan_.rows.empty()) fail();
    std::stable_sort(plan_.rows.begin(), plan_.rows.end(),
                     [](const PlanRow& a, const PlanRow& b) { return a.tokens_per_second > b.tokens_per_second; });
    return std::move(plan_);
  }

 private:
  void add_schedule(const ScheduleKind& kind) {
    ScheduleOptions schedule;
    schedule.name = kind.name;
    schedule.own = options_.own.of_kind(kind.name);
    schedule.stages = static_cast<int>(options_.workers * stages_per_worker(kind, schedule.own));
    schedule.window = options_.window;
    schedule.replicas = options_.replicas;
    schedule.shard_optimizer = options_.shard_optimizer;
    schedule.names = options_.names;
    schedule.tb_over_tf = std::clamp(plan_.tb_over_tf, 0.1, 10.0);
    if (kind.variants == nullptr) return add(schedule);
    for (OptionTable& variant : kind.variants(options_.workers, schedule.own)) {
      schedule.own = std::move(variant);
      add(schedule);
    }
  }

  void add(ScheduleOptions options) {
    if (options.stages > static_cast<int>(layers_.size())) {
      return leave_out(
          options, fmt::format("{} stages need as many layers, and the model has {}", options.stages, layers_.size()));
    }
    std::string why;
    std::optional<Schedule> schedule = next_servable(options, why);
    if (!schedule) return leave_out(options, why);
    if (options_.weights) schedule->weights = *options_.weights;
    for (const bool recompute : {false, true}) {
      const CostModel costs = stage_costs(layers_, options.stages, recompute, options_.tokens_per_microbatch);
      const PlanRow row = evaluate(options, *schedule, costs, recompute);
      least_ = std::min(least_, std::tuple{row.peak_memory, label(options)});
      if (options_.memory_limit == 0 || row.peak_memory <= options_.memory_limit) {
        plan_.rows.push_back(row);
        return;
      }
      if (recompute) {
        leave_out(options,
                  fmt::format("needs {} even with recompute", human_bytes(static_cast<double>(row.peak_memory))));
      }
    }
  }

  // With what it has of its own, where that is not what was asked for: "amdp, 3 pipelines".
  std::string label(const ScheduleOptions& options) const {
    std::map<std::string, std::string> asked;
    options_.own.of_kind(options.name).each_option([&](const char* key, const auto& value, auto&&...) {
      asked[key] = fmt::format("{}", value);
    });
    std::string label = options.name;
    options.own.each_option([&](const char* key, const auto& value, auto&&...) {
      const std::string text = fmt::format("{}", value);
      if (asked[key] != text) label += fmt::format(", {} {}", text, key);
    });
    return label;
  }
  void leave_out(const ScheduleOptions& options, const std::string& why) {
    plan_.left_out.push_back(label(options) + ": " + why);
  }

  [[noreturn]] void fail() const {
    const auto& [bytes, name] = least_;
    throw InputError(fmt::format("no schedule fits in {} on each of {} workers; the least is {}, with {}",
                                 human_bytes(static_cast<double>(options_.memory_limit)), options_.workers,
                                 human_bytes(static_cast<double>(bytes)), name));
  }

  const std::vector<LayerProfile>& layers_;
  const PlanOptions& options_;
  Plan plan_;
  std::tuple<int64_t, std::string> least_{std::numeric_limits<int64_t>::max(), ""};
};

}  // namespace

CostModel stage_costs(const std::vector<LayerProfile>& layers, int stages, bool recompute,
                      int64_t tokens_per_microbatch) {
  std::vector<double> seconds;
  for (const LayerProfile& layer : layers) seconds.push_back(layer.forward + layer.backward());
  CostModel model;
  model.tokens_per_microbatch = tokens_per_microbatch;
  for (const LayerRange range : partition_by_cost(seconds, stages)) {
    StageCost cost;
    cost.forward = cost.backward_input = cost.backward_weights = 0;
    for (int i = range.begin; i < range.end; ++i) {
      const LayerProfile& layer = layers[i];
      cost.forward += layer.forward;
      cost.backward_input += layer.backward_input;
      cost.backward_weights += layer.backward_weights;
      cost.update += layer.update;
      cost.activation_bytes += layer.activation_bytes;
      cost.weight_bytes += layer.weight_bytes;
      cost.gradient_bytes += layer.gradient_bytes;
      cost.optimizer_bytes += layer.optimizer_bytes;
    }
    cost.output_bytes = range.end < static_cast<int>(layers.size()) ? layers[range.end - 1].output_bytes : 0;
    if (recompute) {
      cost.backward_input += cost.forward;
      cost.activation_bytes = layers[range.begin].input_bytes;
    }
    cost.backward = cost.backward_input + cost.backward_weights;
    model.stages.push_back(cost);
  }
  return model;
}

Plan make_plan(const std::vector<LayerProfile>& layers, const PlanOptions& options) {
  return Planner(layers, options).run();
}

}  // namespace gyre
