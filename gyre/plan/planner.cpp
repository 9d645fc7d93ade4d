#include "gyre/plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "gyre/core/bytes.h"
#include "gyre/core/cores.h"
#include "gyre/core/error.h"
#include "gyre/core/ordered_workers.h"
#include "gyre/core/text.h"
#include "gyre/plan/shapes.h"
#include "gyre/schedule/clip_scope.h"
#include "gyre/schedule/delay.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

// The schedule with the smallest window >= options.window that it can have, if there is one near; sets options.window.
// Otherwise `why` is the last error.
std::optional<Schedule> next_servable(ScheduleOptions& options, std::string& why) {
  const int64_t last = options.window + 4LL * options.stages;
  for (; options.window <= last; ++options.window) {
    try {
      return make_schedule(options);
    } catch (const InputError& error) {
      why = error.what();
      why.resize(std::min(why.find('\n'), why.size()));  // without the picture of an invalid schedule
    }
  }
  return std::nullopt;
}

// The largest value of a member of StageCost over all stages.
template <typename Bytes>
int64_t max_of(const CostModel& costs, Bytes bytes) {
  int64_t max = 0;
  for (const StageCost& stage : costs.stages) max = std::max(max, stage.*bytes);
  return max;
}

// Of what goes from a stage to the next on another worker.
int64_t largest_message(const Schedule& schedule, const CostModel& costs) {
  int64_t bytes = 0;
  for (int p = 0; p < schedule.pipelines; ++p) {
    for (int stage = 0; stage + 1 < schedule.stages; ++stage) {
      if (schedule.worker_of(p, stage) == schedule.worker_of(p, stage + 1)) continue;
      bytes = std::max(bytes, costs.stage(stage).output_bytes);
    }
  }
  return bytes;
}

PlanRow evaluate(const ScheduleOptions& options, const Schedule& schedule, const CostModel& costs, bool recompute,
                 const SteadyState& state) {
  PlanRow row;
  row.schedule = options;
  row.pipelines = schedule.pipelines;
  row.recompute = recompute;
  row.tokens_per_second = static_cast<double>(costs.tokens_per_microbatch) / state.seconds;
  row.bubble_fraction = state.bubble();
  const Simulation& simulation = state.simulation;
  for (const WorkerMemory& memory : simulation.memory) row.peak_memory = std::max(row.peak_memory, memory.total());
  row.max_delay = simulation.max_delay;
  row.max_mismatch = reads_latest(schedule.weights) ? simulation.max_mismatch : 0;
  row.message_bytes = largest_message(schedule, costs);
  row.gradient_bytes = max_of(costs, &StageCost::gradient_bytes);
  row.weight_bytes = max_of(costs, &StageCost::weight_bytes);
  return row;
}

// See Plan::rows. Rows may be as fast but for rounding.
void rank_rows(std::vector<PlanRow>& rows) {
  std::ranges::stable_sort(rows, {},
                           [](const PlanRow& row) { return std::pair(row.update(), -row.tokens_per_second); });
  for (auto first = rows.begin(); first != rows.end();) {
    const double slower = first->tokens_per_second * (1 - 1e-9);
    const auto last = std::find_if(first, rows.end(), [&](const PlanRow& row) {
      return row.update() > first->update() || row.tokens_per_second < slower;
    });
    std::stable_sort(first, last, [](const PlanRow& a, const PlanRow& b) {
      return std::tie(a.max_delay, a.peak_memory) < std::tie(b.max_delay, b.peak_memory);
    });
    first = last;
  }
}

// A schedule that may suit the model and the workers.
struct Candidate {
  ScheduleOptions options;                     // with the smallest window that is wanted
  const Schedule* of_file = nullptr;           // otherwise it is built
  std::shared_ptr<const WorkerPlaces> places;  // on a cluster
};

// What became of a candidate.
struct Verdict {
  ScheduleOptions options;             // with the schedule's window
  std::optional<PlanRow> row;          // if it fits
  std::string why_not;                 // otherwise
  std::optional<int64_t> peak_memory;  // the least with and without recompute, if it could be simulated
};

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
    if (options_.cluster == nullptr) {
      add_shape({0, options_.workers, options_.replicas, false});
      if (options_.from_file) candidates_.push_back({options_.from_file->options, &options_.from_file->schedule, {}});
    } else {
      for (const Shape& shape : shapes_on(*options_.cluster, static_cast<int>(layers_.size()))) add_shape(shape);
      if (options_.from_file) {
        leave_out(options_.from_file->options, "a file says which workers there are; without a cluster it is ranked");
      }
    }
    judge_candidates();
    if (plan_.rows.empty()) fail();
    rank_rows(plan_.rows);
    plan_.update = options_.window * options_.replicas;
    plan_.common_window = common_window();
    for (auto& [name, why] : left_out_) {
      if (!fits_somewhere_.contains(name)) plan_.left_out.push_back(fmt::format("{}: {}", name, why));
    }
    if (options_.cluster != nullptr) add_details();
    return std::move(plan_);
  }

 private:
  void add_shape(const Shape& shape) {
    shape_ = shape;
    if (options_.cluster != nullptr) {
      places_ = std::make_shared<const WorkerPlaces>(*options_.cluster, shape.workers * shape.replicas);
    }
    for (const ScheduleKind& kind : schedule_kinds().all()) add_schedule(kind);
  }

  void add_schedule(const ScheduleKind& kind) {
    ScheduleOptions schedule;
    schedule.name = kind.name;
    schedule.own = options_.own.of_kind(kind.name);
    schedule.stages = static_cast<int>(shape_.workers * stages_per_worker(kind, schedule.own));
    schedule.window = window();
    schedule.replicas = shape_.replicas;
    schedule.by_stages = shape_.by_stages;
    schedule.shard_optimizer = options_.shard_optimizer;
    schedule.tied = options_.tied;
    schedule.clip_scope = options_.clip_scope;
    schedule.names = options_.names;
    schedule.tb_over_tf = std::clamp(plan_.tb_over_tf, 0.1, 10.0);
    if (kind.variants == nullptr) return add(schedule);
    for (OptionTable& variant : kind.variants(shape_.workers, schedule.own)) {
      schedule.own = std::move(variant);
      add(schedule);
    }
  }

  // The window of each replica, so that an update takes at least as many microbatches as the options say.
  int64_t window() const {
    const int64_t total = options_.window * options_.replicas;
    return options_.cluster == nullptr ? options_.window : (total + shape_.replicas - 1) / shape_.replicas;
  }

  void add(const ScheduleOptions& options) { candidates_.push_back({options, nullptr, places_}); }

  // On all cores; verdicts come in the order of the candidates.
  void judge_candidates() {
    size_t judged = 0;
    OrderedWorkers<Candidate, Verdict> workers(
        usable_core_count(), [this](const Candidate& candidate) { return judge(candidate); },
        [&](Verdict verdict) {
          take(std::move(verdict));
          if (options_.progress) options_.progress(++judged, candidates_.size());
        });
    for (Candidate& candidate : candidates_) workers.put(std::move(candidate));
    workers.finish();
  }

  Verdict judge(const Candidate& candidate) const {
    Verdict verdict{candidate.options, {}, {}, {}};
    if (verdict.options.stages > static_cast<int>(layers_.size())) {
      verdict.why_not =
          fmt::format("{} stages need as many layers, and the model has {}", verdict.options.stages, layers_.size());
      return verdict;
    }
    std::optional<Schedule> schedule =
        candidate.of_file != nullptr ? *candidate.of_file : next_servable(verdict.options, verdict.why_not);
    if (!schedule) return verdict;
    try {
      check_clipping(*schedule);
    } catch (const InputError& error) {
      verdict.why_not = error.what();
      return verdict;
    }
    if (options_.weights) schedule->weights = *options_.weights;
    const WorkerPlaces* places = candidate.places.get();
    for (const bool recompute : {false, true}) {
      const CostModel costs =
          stage_costs(layers_, *schedule, verdict.options.window, recompute, options_.tokens_per_microbatch);
      const SteadyState state = steady_state(*schedule, costs, {.places = places});
      PlanRow row = evaluate(verdict.options, *schedule, costs, recompute, state);
      verdict.peak_memory = std::min(verdict.peak_memory.value_or(row.peak_memory), row.peak_memory);
      const std::optional<Excess> excess = find_excess(state.simulation.memory, places);
      if (!excess) {
        if (places != nullptr) place(row, *schedule, costs, state, *places);
        verdict.row = std::move(row);
        return verdict;
      }
      const auto [needed, limit] =
          distinct_bytes(static_cast<double>(excess->needed), static_cast<double>(excess->limit));
      verdict.why_not = fmt::format("needs {} even with recompute, more than {}", needed, limit);
    }
    return verdict;
  }

  void take(Verdict verdict) {
    if (verdict.peak_memory) {
      min_memory_ = std::min(min_memory_, std::tuple{*verdict.peak_memory, label(verdict.options)});
    }
    if (!verdict.row) return leave_out(verdict.options, verdict.why_not);
    fits_somewhere_.insert(label(verdict.options));
    plan_.rows.push_back(std::move(*verdict.row));
  }

  struct Excess {
    int64_t needed = 0, limit = 0;
  };

  // Of the worker whose memory exceeds its limit most, if one does. The limit is that of the options or, without one,
  // its share of its host's.
  std::optional<Excess> find_excess(const std::vector<WorkerMemory>& memory, const WorkerPlaces* places) const {
    Excess most;
    for (size_t worker = 0; worker < memory.size(); ++worker) {
      Excess own{memory[worker].total(), options_.memory_limit};
      if (own.limit == 0 && places != nullptr) own.limit = places->memory_bytes(static_cast<int>(worker));
      if (own.limit > 0 && own.needed - own.limit > most.needed - most.limit) most = own;
    }
    return most.limit > 0 ? std::optional(most) : std::nullopt;
  }

  // Adds what depends on the cluster: the hosts, and the time that checkpoints take by draining the pipeline and making
  // all workers wait.
  void place(PlanRow& row, const Schedule& schedule, const CostModel& costs, const SteadyState& state,
             const WorkerPlaces& places) const {
    row.workers = schedule.workers;
    row.hosts = places.hosts();
    double between = options_.checkpoint_seconds;
    if (options_.checkpoint_every > 0) {
      between = static_cast<double>(options_.checkpoint_every * schedule.window) * state.seconds;
    }
    if (between <= 0) return;
    const double pause = state.fill + checkpoint_stall(costs, state.simulation.memory, &places);
    row.checkpoint_share = pause / (between + pause);
    row.tokens_per_second *= 1 - row.checkpoint_share;
  }

  void add_details() {
    size_t row = 0;
    OrderedWorkers<PlanRow, PlanRow> workers(
        usable_core_count(), [this](const PlanRow& row) { return with_details(row); },
        [&](PlanRow detailed) { plan_.rows[row++] = std::move(detailed); });
    for (size_t i = 0; i < std::min(options_.detailed_rows, plan_.rows.size()); ++i) workers.put(plan_.rows[i]);
    workers.finish();
  }

  PlanRow with_details(PlanRow row) const {
    Schedule schedule = make_schedule(row.schedule);
    if (options_.weights) schedule.weights = *options_.weights;
    const WorkerPlaces places(*options_.cluster, schedule.workers);
    const CostModel costs =
        stage_costs(layers_, schedule, row.schedule.window, row.recompute, options_.tokens_per_microbatch);
    const SimulationOptions on_places{.places = &places, .links = true};
    const SteadyState state = steady_state(schedule, costs, on_places);
    row.losses = find_losses(schedule, costs, on_places, state);
    row.links = use_by_class(state.simulation, places);
    return row;
  }

  // See Plan::common_window. A schedule of a file has the window that it has.
  int64_t common_window() const {
    const bool differ = plan_.rows.front().update() < plan_.rows.back().update();
    if (!differ || options_.cluster != nullptr || options_.from_file) return 0;
    constexpr int64_t kMostMore = 4096;
    int64_t window = options_.window, before = 0;
    while (window != before && window <= options_.window + kMostMore) {
      before = window;
      for (const PlanRow& row : plan_.rows) {
        ScheduleOptions schedule = row.schedule;
        schedule.window = window;
        std::string why;
        if (!next_servable(schedule, why)) return 0;
        window = schedule.window;
      }
    }
    return window == before ? window : 0;
  }

  // The schedule's name, with those of its own options that differ from the ones asked for: "amdp, pipelines = 3".
  std::string label(const ScheduleOptions& options) const {
    std::map<std::string, std::string> asked;
    options_.own.of_kind(options.name).each_option([&](const char* key, const auto& value, auto&&...) {
      asked[key] = fmt::format("{}", value);
    });
    std::string label = options.name;
    options.own.each_option([&](const char* key, const auto& value, auto&&...) {
      const std::string text = fmt::format("{}", value);
      if (asked[key] != text) label += fmt::format(", {} = {}", key, text);
    });
    return label;
  }
  void leave_out(const ScheduleOptions& options, const std::string& why) {
    const std::string name = label(options);
    if (options_.cluster == nullptr) return plan_.left_out.push_back(fmt::format("{}: {}", name, why));
    // Keeps only the first reason of all shapes; run() drops it if the schedule fits in another shape.
    const auto found = std::ranges::find(left_out_, name, [](const auto& entry) { return entry.first; });
    if (found == left_out_.end()) left_out_.emplace_back(name, why);
  }

  [[noreturn]] void fail() const {
    const auto& [bytes, name] = min_memory_;
    if (name.empty()) {  // memory is not the reason
      const std::string first = options_.cluster == nullptr
                                    ? plan_.left_out.front()
                                    : fmt::format("{}: {}", left_out_.front().first, left_out_.front().second);
      throw InputError(fmt::format("no schedule suits the model and its workers; {}", first));
    }
    if (options_.cluster != nullptr && options_.memory_limit == 0) {
      throw InputError(fmt::format("no schedule fits in the memory of the cluster's workers; the least is {}, with {}",
                                   human_bytes(static_cast<double>(bytes)), name));
    }
    const auto [least, limit] = distinct_bytes(static_cast<double>(bytes), static_cast<double>(options_.memory_limit));
    throw InputError(fmt::format(
        "no schedule fits in {} on each of {}; the least is {}, with {}", limit,
        counted(options_.cluster == nullptr ? options_.workers : options_.cluster->workers(), "worker"), least, name));
  }

  const std::vector<LayerProfile>& layers_;
  const PlanOptions& options_;
  Shape shape_;
  std::shared_ptr<const WorkerPlaces> places_;  // of the current shape, on a cluster
  std::vector<Candidate> candidates_;
  Plan plan_;
  std::vector<std::pair<std::string, std::string>> left_out_;  // on a cluster: label, reason
  std::set<std::string> fits_somewhere_;
  std::tuple<int64_t, std::string> min_memory_{std::numeric_limits<int64_t>::max(), ""};
};

}  // namespace

Plan make_plan(const std::vector<LayerProfile>& layers, const PlanOptions& options) {
  return Planner(layers, options).run();
}

}  // namespace gyre
