#include "measure_links_flags.h"

#include "command.h"

namespace gyre::app {

void declare_measure_links_flags(CLI::App& command, MeasureLinksFlags& flags) {
  command.add_option("--out", flags.out, "The cluster's file (TOML), which is written")
      ->check(file_to_write("# Written by gyre measure-links"));
  declare_meeting_flags(command, flags.meeting);
  command.footer(
      "Under a launcher that starts ranks host by host: gyre launch -n 2 -- measure-links, torchrun, mpirun or srun.\n"
      "Neighbouring ranks send each other messages, one pair after the other; a class of links gets the median.\n"
      "Each rank counts as a worker of speed 1; its memory is its part of what the host has left.");
}

}  // namespace gyre::app
