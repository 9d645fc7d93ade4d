#include "launched_ranks.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "gyre/core/files.h"
#include "output.h"

namespace gyre::app {

void end_at_once(const Error& error) {
  print_error(error.what());
  std::_Exit(error.exit_code());
}

std::unique_ptr<Ranks> make_ranks(const Rank& own_rank, const MeetingFlags& flags, std::stop_token stop,
                                  std::function<void(const Error&)> abandon) {
  const std::chrono::seconds meet_within(flags.meet_within);
  MeetingPlace place;
  place.directory = own_rank.store_directory;
  place.address = own_rank.master_address;
  place.port = own_rank.master_port;
  place.serves = own_rank.rank == 0 && !own_rank.agent_store;
  place.world = own_rank.world;
  place.attempt = own_rank.restart;
  place.interface = flags.interface;
  place.deadline = meet_within;
  place.stop = std::move(stop);
  place.abandon = std::move(abandon);
  const std::string& job = flags.job.empty() ? own_rank.job : flags.job;
  return std::make_unique<Ranks>(own_rank.rank, own_rank.world, job, make_rendezvous(place), meet_within);
}

void remove_mark_of_launcher(const Rank& own_rank, const char* mark) {
  if (own_rank.store_directory.empty()) return;
  system_files().remove(std::filesystem::path(own_rank.store_directory) / mark);
}

void tell_launcher_done(const Rank& own_rank) {
  if (own_rank.store_directory.empty()) return;
  try {
    write_new_file(std::filesystem::path(own_rank.store_directory) / kDoneMark, "");
  } catch (const Error&) {  // it is only a hint: without it, another attempt finds that all is done
  }
}

}  // namespace gyre::app
