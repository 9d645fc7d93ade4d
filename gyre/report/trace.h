// Timelines in the Chrome trace format, for chrome://tracing and Perfetto: the same for simulations and measured runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gyre/core/file_system.h"
#include "gyre/schedule/schedule.h"
#include "gyre/schedule/timed_action.h"

namespace gyre {

// actions: [worker], in order, times in seconds (or units, drawn as seconds). One track per worker, one slice per
// action, an arrow for every activation and gradient that goes from one worker to another, and a span "under way" for
// each that one process sent another.
std::string trace_text(const Schedule& schedule, const std::vector<std::vector<TimedAction>>& actions);
// Replaces `path` atomically.
void write_trace(const std::filesystem::path& path, const Schedule& schedule,
                 const std::vector<std::vector<TimedAction>>& actions, FileSystem& files = system_files());

}  // namespace gyre
