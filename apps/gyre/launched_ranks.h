// The processes that a launcher has started together with this one.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "gyre/core/error.h"
#include "gyre/launch/rank.h"
#include "gyre/runtime/ranks/ranks.h"
#include "meeting_flags.h"

namespace gyre::app {

// stop: ends the wait for the others. abandon: as in MeetingPlace. Throws InputError if they cannot be met.
std::unique_ptr<Ranks> make_ranks(const Rank& own_rank, const MeetingFlags& flags, std::stop_token stop,
                                  std::function<void(const Error&)> abandon);

// Called by rank 0: removes a mark that `gyre launch` has left for it (launch/rank.h). Does nothing under another
// launcher.
void remove_mark_of_launcher(const Rank& own_rank, const char* mark);
// Called by rank 0 before it prints its result: leaves the mark by which `gyre launch` knows that all is done.
void tell_launcher_done(const Rank& own_rank);

// Prints the error and ends this process without waiting for a thread that hangs.
[[noreturn]] void end_at_once(const Error& error);

}  // namespace gyre::app
