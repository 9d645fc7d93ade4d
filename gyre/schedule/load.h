// A schedule as users name it: a builtin, or a file of their own in the text form or, if it ends in .csv, in PyTorch's
// CSV.
#pragma once

#include "gyre/schedule/builders.h"

namespace gyre {

// Whether it is a file, rather than a builtin's name.
bool is_schedule_file(const std::string& name);

// options.name is a builtin's name or a path; a file is validated, and is one replica. `check_sizes`: a file must have
// options' stages and window. InputError says what is wrong.
Schedule load_schedule(const ScheduleOptions& options, bool check_sizes);

}  // namespace gyre
