// gyre simulate: what a schedule would do, without doing it.
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "gyre/core/files.h"
#include "gyre/report/trace.h"
#include "gyre/simulate/simulator.h"
#include "output.h"
#include "schedule_flags.h"

namespace gyre::app {
namespace {

struct Flags {
  ScheduleFlags schedule;
  std::string costs;
  std::string trace;
  bool json = false;
};

void run(Flags& flags) {
  if (!flags.trace.empty()) check_writable(flags.trace);
  const Schedule schedule = flags.schedule.load();
  const CostModel costs =
      flags.costs.empty() ? uniform_costs(flags.schedule.options.tb_over_tf) : load_costs(flags.costs);
  const Simulation simulation =
      simulate(schedule, costs, {.microbatches = flags.schedule.microbatches, .trace = !flags.trace.empty()});
  if (!flags.trace.empty()) write_trace(flags.trace, schedule, simulation.trace);
  print("{}", flags.json ? to_json(simulation) + "\n" : to_text(simulation));
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("simulate", "Predict a schedule's time, bubbles, memory, delay and mismatch");
  flags->schedule.add_to(*command);
  command
      ->add_option("--costs", flags->costs, "Costs (JSON), or a run's directory; without: a forward is 1, links free")
      ->check(some_path());
  command->add_option("--trace", flags->trace, "Write the timeline as Chrome trace (JSON) to this file")
      ->check(file_to_write());
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
