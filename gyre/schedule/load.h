// Loads the schedule that a user names: a builtin, or a file in the text form or, if its name ends in .csv, in
// PyTorch's CSV.
#pragma once

#include "gyre/schedule/builders.h"

namespace gyre {

// Whether `name` is an existing file. Otherwise it is taken for a builtin's name.
bool is_schedule_file(const std::string& name);

// options.name is a builtin's name or a path. A file is validated; it describes one replica. With `check_sizes`, a file
// must have the stages and the window of `options`. Throws InputError, which names the file and the line of the fault.
Schedule load_schedule(const ScheduleOptions& options, bool check_sizes);

}  // namespace gyre
