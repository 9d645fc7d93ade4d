#include "launched_ranks.h"

#include <chrono>
#include <cstdlib>

#include "output.h"

namespace gyre::app {

void end_at_once(const Error& error) {
  print_error(error.what());
  std::_Exit(error.exit_code());
}

std::unique_ptr<Ranks> make_ranks(const Rank& here, const MeetingFlags& flags) {
  const std::chrono::seconds meet_within(flags.meet_within);
  MeetingPlace place;
  place.directory = here.store_directory;
  place.address = here.master_address;
  place.port = here.master_port;
  place.serves = here.rank == 0 && !here.agent_store;
  place.world = here.world;
  place.attempt = here.restart;
  place.interface = flags.interface;
  place.deadline = meet_within;
  place.abandon = end_at_once;
  const std::string& job = flags.job.empty() ? here.job : flags.job;
  return std::make_unique<Ranks>(here.rank, here.world, job, make_rendezvous(place), meet_within);
}

}  // namespace gyre::app
