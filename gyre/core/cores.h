// Which cores threads may run on.
#pragma once

#include <vector>

namespace gyre {

// Those that the calling thread may run on, ascending: what the machine, a container's cpuset or taskset allow. Empty
// where nobody says.
std::vector<int> usable_cores();

// From `cores`, the `count` that worker `number` has to itself, as long as there are enough: workers take them by
// turns.
std::vector<int> cores_of_worker(const std::vector<int>& cores, int number, int count);

// The calling thread, and those that it starts from now on, run on these alone. Nothing happens for none, or where the
// system does not allow it: where a thread runs changes no result.
void stay_on(const std::vector<int>& cores);

}  // namespace gyre
