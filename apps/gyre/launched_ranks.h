// The processes that a launcher has started together with this one.
#pragma once

#include <memory>

#include "gyre/core/error.h"
#include "gyre/launch/rank.h"
#include "gyre/runtime/ranks/ranks.h"
#include "meeting_flags.h"

namespace gyre::app {

// Throws InputError if they cannot be met.
std::unique_ptr<Ranks> make_ranks(const Rank& own_rank, const MeetingFlags& flags);

// Prints the error and ends this process without waiting for a thread that hangs.
[[noreturn]] void end_at_once(const Error& error);

}  // namespace gyre::app
