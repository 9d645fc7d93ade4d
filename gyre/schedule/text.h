// The text form of schedules: files, logs and tests use it. Grammar and an example: docs/schedule-format.md.
#pragma once

#include <string>
#include <string_view>

#include "gyre/schedule/schedule.h"

namespace gyre {

std::string to_text(const Schedule& schedule);
// Strict. Throws InputError that names `origin` (a file's name) and the line number.
Schedule parse_schedule(std::string_view text, const std::string& origin);
// The number of the line that has the worker's program. `text` has been parsed. Throws std::out_of_range if it has no
// such worker.
int line_of_worker(std::string_view text, int worker);

}  // namespace gyre
