// Writes timelines in the Chrome trace format, for chrome://tracing and Perfetto. Simulations and measured runs use the
// same format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/core/file_system.h"
#include "gyre/schedule/schedule.h"
#include "gyre/schedule/timed_action.h"

namespace gyre {

// What every trace begins with.
inline constexpr std::string_view kTraceBeginning = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";

// actions: [worker], in order, with times in seconds (or units of time, drawn as seconds). The trace has one track per
// worker, one slice per action, an arrow for every activation and gradient between two workers, and a span "under way"
// for every message between two processes.
std::string trace_text(const Schedule& schedule, const std::vector<std::vector<TimedAction>>& actions);
// Replaces `path` atomically. Holds a piece of the text at a time.
void write_trace(const std::filesystem::path& path, const Schedule& schedule,
                 const std::vector<std::vector<TimedAction>>& actions, FileSystem& files = system_files());

}  // namespace gyre
