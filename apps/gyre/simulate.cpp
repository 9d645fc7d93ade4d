// gyre simulate: what a schedule would do, without doing it.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "command.h"
#include "gyre/cluster/cluster.h"
#include "gyre/cluster/worker_places.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/message.h"
#include "gyre/report/trace.h"
#include "gyre/schedule/limits.h"
#include "gyre/simulate/simulator.h"
#include "number_flag.h"
#include "output.h"
#include "schedule_flags.h"

namespace gyre::app {
namespace {

struct Flags {
  ScheduleFlags schedule;
  std::string costs;
  std::string cluster;
  int64_t checkpoint_every = 0;
  std::string trace;
  bool help_cluster = false;
  bool json = false;
};

// Throws InputError for flags that do not go together.
void check_flags(const Flags& flags) {
  if (!flags.cluster.empty() && flags.costs.empty()) {
    throw InputError(
        "--cluster needs --costs: its links are in seconds and bytes, and without costs a forward takes 1");
  }
  if (flags.checkpoint_every > 0 && !flags.trace.empty()) {
    throw InputError("--trace shows a run without checkpoints; leave out --checkpoint-every");
  }
}

void run(Flags& flags) {
  if (flags.help_cluster) {
    print("{}", describe_cluster());
    return;
  }
  check_flags(flags);
  const Schedule schedule = flags.schedule.load(flags.costs.empty());
  const CostModel costs =
      flags.costs.empty() ? uniform_costs(flags.schedule.options.tb_over_tf) : load_costs(flags.costs);
  std::optional<Cluster> cluster;
  std::optional<WorkerPlaces> places;
  if (!flags.cluster.empty()) places.emplace(cluster.emplace(load_cluster(flags.cluster)), schedule.workers);
  const Simulation simulation = simulate(schedule, costs,
                                         {.microbatches = flags.schedule.microbatches,
                                          .trace = !flags.trace.empty(),
                                          .places = places ? &*places : nullptr,
                                          .links = places.has_value(),
                                          .checkpoint_every = flags.checkpoint_every});
  if (!flags.trace.empty()) write_trace(flags.trace, schedule, simulation.trace);
  print("{}", flags.json ? to_json(simulation, places ? &*places : nullptr) + "\n"
                         : printable_lines(to_text(simulation, places ? &*places : nullptr)));
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("simulate", "Predict a schedule's time, bubbles, memory, delay and mismatch");
  flags->schedule.add_to(*command);
  command
      ->add_option("--costs", flags->costs, "Costs (JSON), or a run's directory; without: a forward is 1, links free")
      ->check(some_path());
  command
      ->add_option("--cluster", flags->cluster,
                   "Hosts, speeds and links (TOML), with --costs: workers are on the hosts in order")
      ->check(some_path());
  add_number(*command, "--checkpoint-every", flags->checkpoint_every, {0, kMostWindow},
             "Updates after which the pipeline drains and is saved; 0: never");
  command->add_option("--trace", flags->trace, "Write the timeline as Chrome trace (JSON) to this file")
      ->check(file_to_write(kTraceBeginning));
  command->add_flag("--help-cluster", flags->help_cluster, "List every key of a cluster's file, and exit");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
