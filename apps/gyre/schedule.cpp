// gyre schedule: writes a schedule out, as text, CSV, a grid over time or a picture.
#include <fmt/format.h>

#include <memory>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/text.h"
#include "gyre/simulate/grid.h"
#include "gyre/simulate/timeline_svg.h"
#include "output.h"
#include "schedule_flags.h"

namespace gyre::app {
namespace {

struct Flags {
  ScheduleFlags schedule;
  std::string format = "text";
};

std::string written(const Flags& flags, const Schedule& schedule) {
  if (flags.format == "text") return to_text(schedule);
  if (flags.format == "csv") return to_csv(schedule, flags.schedule.microbatches);
  if (flags.format == "grid") return to_grid(schedule, flags.schedule.microbatches, flags.schedule.options.tb_over_tf);
  if (flags.format == "svg") return to_svg(schedule, flags.schedule.microbatches, flags.schedule.options.tb_over_tf);
  throw InputError(fmt::format("--format '{}' is unknown{}", printable(flags.format),
                               suggestion(flags.format, {"text", "csv", "grid", "svg"})));
}

void run(Flags& flags) {
  const Schedule schedule = flags.schedule.load(flags.format == "grid" || flags.format == "svg");
  print("{}", written(flags, schedule));
}

}  // namespace

void add_schedule(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("schedule", "Print a schedule: text (the file form), CSV, a grid over time, or a picture");
  flags->schedule.add_to(*command);
  command
      ->add_option("--format", flags->format, "text | csv (one pipeline, computations alone) | grid | svg (a picture)")
      ->check(offers({"text", "csv", "grid", "svg"}));
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
