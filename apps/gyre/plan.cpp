// gyre plan CONFIG.toml: measures the model's layers here and ranks the schedules by what they would do.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/build/build.h"
#include "gyre/core/bytes.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/data/dataset.h"
#include "gyre/inspect/profile.h"
#include "gyre/plan/planner.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  std::string config;
  std::vector<std::string> overrides;
  std::string memory;
  bool json = false;
};

int64_t read_memory(const std::string& text) {
  if (const auto bytes = parse_bytes(text)) return *bytes;
  throw InputError(fmt::format("--memory '{}' is no size; write for example 8GiB or 500MiB", printable(text)));
}

PlanOptions plan_options(const Config& config, const Flags& flags) {
  PlanOptions options;
  options.workers = static_cast<int>(config.pipeline.stages);
  options.replicas = static_cast<int>(config.pipeline.replicas);
  options.shard_optimizer = config.pipeline.shard_optimizer;
  options.window = config.pipeline.accumulate;
  options.own = config.pipeline.own;
  options.names = schedule_options(config).names;
  options.tokens_per_microbatch = config.pipeline.microbatch * config.model.context;
  options.weights = parse_weight_policy(config.pipeline.weights);
  if (!flags.memory.empty()) options.memory_limit = read_memory(flags.memory);
  return options;
}

nlohmann::ordered_json to_json(const PlanRow& row) {
  return {{"schedule", row.schedule.name},
          {"stages", row.schedule.stages},
          {"replicas", row.schedule.replicas},
          {"pipelines", row.pipelines},
          {"accumulate", row.schedule.window},
          {"recompute", row.recompute},
          {"tokens_per_second", row.tokens_per_second},
          {"bubble_fraction", row.bubble_fraction},
          {"peak_memory_bytes", row.peak_memory},
          {"max_delay", row.max_delay},
          {"max_mismatch", row.max_mismatch}};
}

void print_json(const std::vector<LayerProfile>& layers, const Plan& plan) {
  nlohmann::ordered_json json = {{"tb_over_tf", plan.tb_over_tf}};
  json["layers"] = nlohmann::ordered_json::array();
  for (const LayerProfile& layer : layers) {
    json["layers"].push_back({{"name", layer.name},
                              {"forward", layer.forward},
                              {"backward", layer.backward()},
                              {"update", layer.update},
                              {"activation_bytes", layer.activation_bytes}});
  }
  json["plan"] = nlohmann::ordered_json::array();
  for (const PlanRow& row : plan.rows) json["plan"].push_back(to_json(row));
  json["left_out"] = plan.left_out;
  print("{}\n", json.dump());
}

void print_table(const Plan& plan, const Config& config) {
  print("a backward takes {:.2f} forwards: [pipeline] tb_over_tf = {:.2f}\n", plan.tb_over_tf, plan.tb_over_tf);
  if (config.pipeline.replicas > 1) {
    print("of {} replicas together, each on {} workers; accumulate is of each\n", config.pipeline.replicas,
          config.pipeline.stages);
  }
  print("  {:<18} {:>6} {:>9} {:>10} {:>9} {:>9} {:>7} {:>11} {:>6} {:>9}\n", "schedule", "stages", "pipelines",
        "accumulate", "recompute", "tokens/s", "bubble", "memory", "delay", "mismatch");
  for (const PlanRow& row : plan.rows) {
    const auto json = to_json(row);
    const bool chosen =
        row.schedule.name == config.pipeline.schedule && row.schedule.window == config.pipeline.accumulate;
    print("{} {:<18} {:>6} {:>9} {:>10} {:>9} {:>9} {:>6.1f}% {:>11} {:>6} {:>9}\n", chosen ? '*' : ' ',
          row.schedule.name, row.schedule.stages, json["pipelines"].get<int>(), row.schedule.window,
          row.recompute ? "yes" : "no", human_count(row.tokens_per_second), 100 * row.bubble_fraction,
          human_bytes(static_cast<double>(row.peak_memory)), row.max_delay, row.max_mismatch);
  }
  print("* the configuration's own; memory is that of the worker that needs most; delay and mismatch in updates\n");
  for (const std::string& reason : plan.left_out) print("left out: {}\n", reason);
}

void run(const Flags& flags) {
  Config config = load_config(flags.config, flags.overrides);
  const PlanOptions options = plan_options(config, flags);
  if (config.model.vocabulary == 0) resolve_vocabulary(config, Dataset::open(config.data.tokens).vocabulary());
  const auto layers = profile_layers(config);
  const Plan plan = make_plan(layers, options);
  if (flags.json) {
    print_json(layers, plan);
  } else {
    print_table(plan, config);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kPlan.name, kPlan.meaning);
  command
      ->add_option("config", flags->config,
                   "Configuration (TOML); [pipeline] stages says how many workers a replica has")
      ->check(some_path())
      ->required();
  command->add_option("--set", flags->overrides, "Override a key: table.key=value (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--memory", flags->memory, "What a worker has, e.g. 8GiB: leave out what does not fit");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
