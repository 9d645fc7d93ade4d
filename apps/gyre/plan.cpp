// gyre plan CONFIG.toml: measures the model's layers, or reads what was measured, and ranks the schedules by what they
// are predicted to do.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "gyre/build/build.h"
#include "gyre/config/schedule_options.h"
#include "gyre/core/bytes.h"
#include "gyre/core/cores.h"
#include "gyre/core/error.h"
#include "gyre/core/message.h"
#include "gyre/core/text.h"
#include "gyre/data/sources.h"
#include "gyre/inspect/profile.h"
#include "gyre/inspect/profile_settings.h"
#include "gyre/plan/measured_layers.h"
#include "gyre/plan/planner.h"
#include "gyre/schedule/load.h"
#include "number_flag.h"
#include "output.h"
#include "plan_on_cluster.h"
#include "work_line.h"

namespace gyre::app {
namespace {

struct Flags {
  std::string config;
  std::vector<std::string> overrides;
  std::string memory;
  std::string cluster;
  std::string layers;
  int64_t rows = 20;
  bool json = false;
};

int64_t read_memory(const std::string& text) {
  if (const auto bytes = parse_bytes(text)) return *bytes;
  throw InputError(fmt::format("--memory '{}' is not a size; give for example 8GiB or 500MiB", printable(text)));
}

// The workers of each replica: those that the configuration's own schedule has, which may put several stages on each.
int workers_of_replica(const Config& config) {
  ScheduleOptions options = schedule_options(config);
  options.replicas = 1;
  const ScheduleKind* kind = is_schedule_file(options.name) ? nullptr : schedule_kinds().find(options.name);
  if (kind == nullptr) return load_schedule(options, true).workers;
  const int64_t together = stages_per_worker(*kind, options.own);
  if (options.stages % together != 0) build_schedule(config);  // throws, and says which number would do
  return static_cast<int>(options.stages / together);
}

PlanOptions plan_options(const Config& config, const Flags& flags) {
  PlanOptions options;
  if (flags.cluster.empty()) options.workers = workers_of_replica(config);
  options.replicas = static_cast<int>(config.pipeline.replicas);
  options.shard_optimizer = config.pipeline.shard_optimizer;
  options.tied = config.model.tie;
  options.clip_scope = clip_scope(config);
  options.window = config.pipeline.accumulate;
  options.own = config.pipeline.own;
  options.names = schedule_options(config).names;
  if (is_schedule_file(config.pipeline.schedule)) {
    options.from_file = {schedule_options(config), build_schedule(config)};
  }
  options.tokens_per_microbatch = config.pipeline.microbatch * config.model.context;
  options.weights = parse_weight_policy(config.pipeline.weights);
  if (!flags.memory.empty()) options.memory_limit = read_memory(flags.memory);
  options.checkpoint_every = config.run.checkpoint_every;
  options.checkpoint_seconds = 60 * config.run.checkpoint_minutes;
  options.detailed_rows = static_cast<size_t>(flags.rows);
  return options;
}

nlohmann::ordered_json to_json(const PlanRow& row, const Cluster* cluster) {
  nlohmann::ordered_json json = {{"schedule", row.schedule.name},
                                 {"stages", row.schedule.stages},
                                 {"replicas", row.schedule.replicas},
                                 {"pipelines", row.pipelines},
                                 {"accumulate", row.schedule.window},
                                 {"microbatches_per_update", row.update()},
                                 {"recompute", row.recompute},
                                 {"tokens_per_second", row.tokens_per_second},
                                 {"bubble_fraction", row.bubble_fraction},
                                 {"peak_memory_bytes", row.peak_memory},
                                 {"max_delay", row.max_delay},
                                 {"max_mismatch", row.max_mismatch},
                                 {"bytes_per_microbatch", row.message_bytes},
                                 {"gradient_bytes_per_update", row.gradient_bytes},
                                 {"weight_bytes_per_update", row.weight_bytes}};
  if (cluster != nullptr) add_cluster_fields(row, json);
  return json;
}

// The cores that the rates assume, and those of this machine.
struct CoresNeeded {
  int64_t workers, taken, here;  // here: 0 if it is not known
  bool are_there() const { return here == 0 || taken <= here; }
};

CoresNeeded cores_needed(const Config& config, int workers_of_replica) {
  const int64_t workers = workers_of_replica * config.pipeline.replicas;
  return {workers, workers * config.pipeline.threads_per_worker, usable_core_count()};
}

void print_json(const MeasuredLayers& measured, const Plan& plan, const Config& config, const PlanOptions& options) {
  const Cluster* cluster = options.cluster;
  nlohmann::ordered_json json = {{"tb_over_tf", plan.tb_over_tf}, {"microbatches_per_update", plan.update}};
  if (plan.common_window > 0) json["common_accumulate"] = plan.common_window;
  if (cluster == nullptr) {
    const CoresNeeded cores = cores_needed(config, options.workers);
    json["cores_needed"] = cores.taken;
    json["cores_here"] = cores.here;
  }
  json.update(to_json(measured));
  json["plan"] = nlohmann::ordered_json::array();
  const size_t shown = cluster == nullptr ? plan.rows.size() : std::min(options.detailed_rows, plan.rows.size());
  for (size_t i = 0; i < shown; ++i) json["plan"].push_back(to_json(plan.rows[i], cluster));
  json["left_out"] = plan.left_out;
  print_object(json);
}

// A warning if the workers need more cores than this machine has: the rates assume that all have theirs.
std::string shared_cores(const Config& config, int workers_of_replica) {
  if (!computes_on_host(config)) return "";
  const CoresNeeded cores = cores_needed(config, workers_of_replica);
  if (cores.are_there()) return "";
  return fmt::format("tokens/s take {}, {} for each of {}; this machine has {}, and is slower\n",
                     counted(cores.taken, "core"), config.pipeline.threads_per_worker, counted(cores.workers, "worker"),
                     cores.here);
}

// The number of pipelines of the configuration's own schedule, or 0 if that cannot be built.
int own_pipelines(const Config& config) {
  try {
    return build_schedule(config).pipelines;
  } catch (const InputError&) {
    return 0;
  }
}

void print_table(const Plan& plan, const Config& config, int workers_of_replica, bool for_this_machine) {
  print("a backward takes {:.2f} forwards: [pipeline] tb_over_tf = {:.2f}\n", plan.tb_over_tf, plan.tb_over_tf);
  if (config.pipeline.replicas > 1) {
    print("of {} replicas together, each on {}; accumulate is of each\n", config.pipeline.replicas,
          counted(workers_of_replica, "worker"));
  }
  print("  {:<18} {:>6} {:>9} {:>10} {:>9} {:>9} {:>7} {:>11} {:>6} {:>9}\n", "schedule", "stages", "pipelines",
        "accumulate", "recompute", "tokens/s", "bubble", "memory", "delay", "mismatch");
  const int pipelines = own_pipelines(config);
  bool is_own_among_them = false;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const PlanRow& row = plan.rows[i];
    print("{}", line_before(plan, i));
    const bool chosen = row.schedule.name == config.pipeline.schedule &&
                        row.schedule.stages == config.pipeline.stages &&
                        row.schedule.window == config.pipeline.accumulate && row.pipelines == pipelines &&
                        row.recompute == config.pipeline.recompute;
    is_own_among_them |= chosen;
    print("{} {:<18} {:>6} {:>9} {:>10} {:>9} {:>9} {:>6.1f}% {:>11} {:>6} {:>9}\n", chosen ? '*' : ' ',
          printable(std::filesystem::path(row.schedule.name).filename().string()), row.schedule.stages, row.pipelines,
          row.schedule.window, row.recompute ? "yes" : "no", human_count(row.tokens_per_second),
          100 * row.bubble_fraction, human_bytes(static_cast<double>(row.peak_memory)), row.max_delay,
          row.max_mismatch);
  }
  if (is_own_among_them) print("* the configuration's own; ");
  print("memory is that of the worker that needs most; delay and mismatch in updates\n");
  if (for_this_machine) print("{}", shared_cores(config, workers_of_replica));
  for (const std::string& reason : plan.left_out) print("left out: {}\n", printable(reason));
  const PlanRow& best = plan.rows.front();
  const auto tokens = static_cast<double>(config.pipeline.microbatch * config.model.context);
  print("of the fastest with accumulate {}: {}", best.schedule.window,
        describe_need(best, best.tokens_per_second / tokens / best.schedule.replicas));
}

Plan make_plan_with_progress(const std::vector<LayerProfile>& layers, PlanOptions options) {
  WorkLine line;
  options.progress = [&](size_t simulated, size_t all) {
    line.draw(static_cast<int64_t>(simulated), static_cast<int64_t>(all), "schedule", "simulated");
  };
  return make_plan(layers, options);
}

// Both set the configuration's vocabulary if it is not known.
MeasuredLayers measure(Config& config) {
  if (config.model.vocabulary == 0) resolve_vocabulary(config, Dataset::open(config.data));
  return {profile_settings(config), profile_layers(config)};
}
MeasuredLayers read_layers(const std::string& file, Config& config) {
  MeasuredLayers measured = load_layers(file);
  take_profile(measured, file, config);
  return measured;
}

void run(const Flags& flags) {
  Config config = load_config(flags.config, flags.overrides);
  if (flags.cluster.empty()) check_stages(config);
  PlanOptions options = plan_options(config, flags);
  std::optional<Cluster> cluster;
  if (!flags.cluster.empty()) options.cluster = &cluster.emplace(load_cluster(flags.cluster));
  const MeasuredLayers measured = flags.layers.empty() ? measure(config) : read_layers(flags.layers, config);
  const Plan plan = make_plan_with_progress(measured.layers, options);
  if (flags.json) {
    print_json(measured, plan, config, options);
  } else if (cluster) {
    print_text(
        printable_lines(describe_plan(plan, options.detailed_rows, *cluster, config, flags.config, flags.overrides)));
  } else {
    print_table(plan, config, options.workers, flags.layers.empty());
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kPlan.name, kPlan.meaning);
  command
      ->add_option("config", flags->config,
                   "Configuration (TOML); its schedule and stages say how many workers a replica has")
      ->check(some_path())
      ->required();
  command->add_option("--set", flags->overrides, "Override a key: table.key=value (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--memory", flags->memory,
                      "Memory of a worker, e.g. 8GiB; schedules that need more are left out");
  command
      ->add_option("--cluster", flags->cluster,
                   "Hosts and links (TOML); stages, replicas and the order of workers are chosen too")
      ->check(some_path());
  command
      ->add_option("--layers", flags->layers,
                   "What gyre plan --json printed for this configuration, here or on another machine: its layers' "
                   "measurements are used, and nothing is measured")
      ->check(some_path());
  add_number(*command, "--rows", flags->rows, {1, 1'000'000}, "With --cluster: how many to print");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
