// The processes that a launcher has started together with this one.
#pragma once

#include <memory>

#include "gyre/core/error.h"
#include "gyre/launch/rank.h"
#include "gyre/runtime/ranks/ranks.h"
#include "meeting_flags.h"

namespace gyre::app {

// Errors: InputError where they cannot be met.
std::unique_ptr<Ranks> make_ranks(const Rank& here, const MeetingFlags& flags);

// Tells the error and ends this process, where a thread that does not come back cannot be waited for.
[[noreturn]] void end_at_once(const Error& error);

}  // namespace gyre::app
