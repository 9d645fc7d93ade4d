// Schedules as text: an accepted schedule is written and read back the same, and can be validated whether or not it is
// valid.
#include "fuzz/targets.h"
#include "gyre/schedule/text.h"
#include "gyre/schedule/validate.h"

namespace gyre::fuzz {

void schedule_text(std::string_view input) {
  const auto schedule = accepted([&] { return parse_schedule(input, "input"); });
  if (!schedule) return;
  const std::string text = to_text(*schedule);
  require(to_text(parse_schedule(text, "written")) == text, "text comes back the same");
  accepted([&] {
    validate(*schedule);
    return true;
  });
}

}  // namespace gyre::fuzz
