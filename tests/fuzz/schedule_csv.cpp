// Schedules as CSV: an accepted schedule, written for one window and read again, is the same schedule.
#include "fuzz/targets.h"
#include "gyre/schedule/csv.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"

namespace gyre::fuzz {

void schedule_csv(std::string_view input) {
  const auto schedule = accepted([&] { return parse_csv(input, "input"); });
  if (!schedule) return;
  const std::string csv = to_csv(*schedule, schedule->window);
  require(to_text(parse_csv(csv, "input")) == to_text(*schedule), "CSV comes back the same");
  accepted([&] {
    validate(*schedule);
    return true;
  });
}

}  // namespace gyre::fuzz
