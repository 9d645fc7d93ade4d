#include "meeting_flags.h"

#include "number_flag.h"

namespace gyre::app {

void declare_meeting_flags(CLI::App& command, MeetingFlags& flags) {
  command
      .add_option("--interface", flags.interface,
                  "With several processes: where this host is connected to the others, by name or address [127.0.0.1]")
      ->option_text("NAME|ADDRESS");
  command
      .add_option("--job", flags.job,
                  "With several processes: a name for the run, the same for all its ranks and for no other run [the "
                  "launcher's]")
      ->option_text("NAME");
  add_number(command, "--meet-within", flags.meet_within, {1, 86400},
             "With several processes: seconds in which all must be there");
}

}  // namespace gyre::app
