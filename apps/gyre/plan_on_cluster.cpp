#include "plan_on_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "gyre/cluster/worker_places.h"
#include "gyre/core/text.h"
#include "gyre/core/toml_fields.h"

namespace gyre::app {
namespace {

constexpr size_t kMaxHostsInCommand = 16;

std::string percent(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

int64_t tokens_per_update(const PlanRow& row, const Config& config) {
  return config.pipeline.microbatch * config.model.context * row.schedule.window * row.schedule.replicas;
}

std::string table_row(const PlanRow& row, const Config& config) {
  const ScheduleOptions& schedule = row.schedule;
  return fmt::format(
      "  {:<18} {:>5} {:>6} {:>8} {:<9} {:>9} {:>10} {:>9} {:>9} {:>7} {:>9} {:>8} {:>10} {:>11} {:>10} {:>5}\n",
      schedule.name, row.hosts, schedule.stages, schedule.replicas,
      schedule.replicas == 1 ? "" : (schedule.by_stages ? "stages" : "pipelines"), row.pipelines,
      human_count(static_cast<double>(tokens_per_update(row, config))), row.recompute ? "yes" : "no",
      human_count(row.tokens_per_second), percent(row.losses.bubble), percent(row.losses.imbalance),
      percent(row.losses.messages), percent(row.losses.reductions), percent(row.checkpoint_share),
      human_bytes(static_cast<double>(row.peak_memory)), row.max_delay);
}

// The lines "network: ...": what one pipeline and one update send, and the use of each class of links.
std::string describe_network(const PlanRow& row, const Config& config) {
  const double microbatches = row.tokens_per_second /
                              static_cast<double>(config.pipeline.microbatch * config.model.context) /
                              row.schedule.replicas;
  std::string text = describe_need(row, microbatches);
  for (const ClassUse& use : row.links) text += fmt::format("         {}\n", describe(use));
  return text;
}

}  // namespace

std::string line_before(const Plan& plan, size_t i) {
  const bool is_first = plan.rows[i].update() > plan.update && (i == 0 || plan.rows[i - 1].update() == plan.update);
  if (!is_first) return "";
  std::string line =
      "  larger updates than configured, as these rows need; compare tokens/s only between equal updates";
  if (plan.common_window > 0) {
    line += fmt::format(" (--set pipeline.accumulate={} makes all equal)", plan.common_window);
  }
  return line + "\n";
}

std::string describe_need(const PlanRow& row, double microbatches_per_second) {
  const auto bytes = static_cast<double>(row.message_bytes);
  std::string text = "network: nothing from stage to stage, since one worker has them all\n";
  if (bytes > 0) {
    text =
        fmt::format("network: from stage to stage {} a microbatch, and as much back: {}/s each way in each replica\n",
                    human_bytes(bytes), human_bytes(bytes * microbatches_per_second));
  }
  if (row.pipelines > 1) {
    text += fmt::format(
        "         and for every update up to {} of gradients and {} of weights for each copy of a stage\n",
        human_bytes(static_cast<double>(row.gradient_bytes)), human_bytes(static_cast<double>(row.weight_bytes)));
  }
  return text;
}

void add_cluster_fields(const PlanRow& row, nlohmann::ordered_json& json) {
  json["hosts"] = row.hosts;
  json["workers"] = row.workers;
  json["worker_order"] = row.schedule.by_stages ? "stages" : "pipelines";
  json["lost"] = {{"bubble", row.losses.bubble},
                  {"imbalance", row.losses.imbalance},
                  {"messages", row.losses.messages},
                  {"reductions", row.losses.reductions},
                  {"checkpoints", row.checkpoint_share}};
  json["links"] = nlohmann::ordered_json::array();
  for (const ClassUse& use : row.links) json["links"].push_back(to_json(use));
}

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;  // keys and values, as a configuration has them

// The row's keys of [pipeline].
Pairs pipeline_keys(const PlanRow& row, double tb_over_tf) {
  const ScheduleOptions& schedule = row.schedule;
  return {{"schedule", toml_string(schedule.name)},
          {"stages", fmt::to_string(schedule.stages)},
          {"replicas", fmt::to_string(schedule.replicas)},
          {"worker_order", toml_string(schedule.by_stages ? "stages" : "pipelines")},
          {"accumulate", fmt::to_string(schedule.window)},
          {"recompute", fmt::to_string(row.recompute)},
          {"tb_over_tf", fmt::format("{:.2f}", tb_over_tf)}};
}

// Those of the schedule's own table.
Pairs schedule_keys(const PlanRow& row) {
  Pairs keys;
  row.schedule.own.each_option(
      [&](const char* key, const auto& value, auto&&...) { keys.emplace_back(key, toml_value(value)); });
  return keys;
}

std::string table_of(const std::string& name, const Pairs& keys) {
  std::string text = fmt::format("[{}]\n", name);
  for (const auto& [key, value] : keys) text += fmt::format("{} = {}\n", key, value);
  return text;
}

std::string own_table(const PlanRow& row) {
  return fmt::format("pipeline.{}", row.schedule.name);
}

// "pipeline.stages" and the others that pipeline_lines() has.
std::set<std::string> printed_keys(const PlanRow& row) {
  std::set<std::string> printed;
  for (const auto& [key, value] : pipeline_keys(row, 1)) printed.insert("pipeline." + key);
  for (const auto& [key, value] : schedule_keys(row)) printed.insert(own_table(row) + "." + key);
  return printed;
}

}  // namespace

std::string pipeline_lines(const PlanRow& row, double tb_over_tf) {
  const std::string text = table_of("pipeline", pipeline_keys(row, tb_over_tf));
  const Pairs own = schedule_keys(row);
  return own.empty() ? text : text + "\n" + table_of(own_table(row), own);
}

std::string words_of_configuration(const std::string& config_file, const std::vector<std::string>& overrides,
                                   const PlanRow& row) {
  const std::set<std::string> printed = printed_keys(row);
  std::string words = shell_word(config_file);
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    if (equals == std::string::npos || printed.contains(key)) continue;
    words += fmt::format(" --set {}={}", key, shell_word(text.substr(equals + 1)));
  }
  return words;
}

std::string launch_command(const PlanRow& row, const Cluster& cluster, const std::string& config_words) {
  const int64_t together = cluster.settings.workers_per_process;
  const int64_t processes = row.workers / together;
  if (processes == 1) return fmt::format("gyre train {}", config_words);
  if (row.hosts == 1) return fmt::format("gyre launch -n {} -- train {}", processes, config_words);
  const std::string train = fmt::format("gyre train {} --interface INTERFACE", config_words);
  const auto used = static_cast<size_t>(row.hosts);
  if (used > kMaxHostsInCommand) {
    return fmt::format(
        "mpirun -n {} --hostfile HOSTS {}\n(HOSTS: the first {} hosts of the cluster in its order, each with "
        "a slot for every process)",
        processes, train, used);
  }
  const WorkerPlaces places(cluster, row.workers);
  std::vector<std::string> hosts;
  for (size_t host = 0; host < used; ++host) {
    hosts.push_back(
        fmt::format("{}:{}", cluster.hosts[host].name, places.workers_on(static_cast<int>(host)) / together));
  }
  return fmt::format("mpirun -n {} --host {} {}", processes, shell_word(join(hosts, ",")), train);
}

std::string describe_plan(const Plan& plan, size_t rows, const Cluster& cluster, const Config& config,
                          const std::string& config_file, const std::vector<std::string>& overrides) {
  std::string text = fmt::format(
      "a backward takes {:.2f} forwards; the cluster has {} on {}\n"
      "  {:<18} {:>5} {:>6} {:>8} {:<9} {:>9} {:>10} {:>9} {:>9} {:>7} {:>9} {:>8} {:>10} {:>11} {:>10} {:>5}\n",
      plan.tb_over_tf, counted(cluster.workers(), "worker"), counted(std::ssize(cluster.hosts), "host"), "schedule",
      "hosts", "stages", "replicas", "near", "pipelines", "an update", "recompute", "tokens/s", "bubble", "imbalance",
      "messages", "reductions", "checkpoints", "memory", "delay");
  const size_t shown = std::min(rows, plan.rows.size());
  for (size_t i = 0; i < shown; ++i) text += line_before(plan, i) + table_row(plan.rows[i], config);
  if (plan.rows.size() > shown) {
    text += fmt::format("  and {} more, which are slower or have larger updates (--rows)\n", plan.rows.size() - shown);
  }
  text +=
      "near: which workers are next to each other; an update: its tokens; bubble to checkpoints: shares of the time "
      "that "
      "are lost to them\n";
  for (const std::string& reason : plan.left_out) text += fmt::format("left out: {}\n", reason);
  const PlanRow& best = plan.rows.front();
  return fmt::format("{}\nthe fastest with {} an update:\n\n{}\n{}\n{}\n", text, counted(best.update(), "microbatch"),
                     pipeline_lines(best, plan.tb_over_tf), describe_network(best, config),
                     launch_command(best, cluster, words_of_configuration(config_file, overrides, best)));
}

}  // namespace gyre::app
