// Which cores threads may run on.
#pragma once

#include <filesystem>
#include <vector>

namespace gyre {

// The cores that the calling thread may run on, ascending, as the machine, a container's cpuset or taskset allow. Empty
// if the system does not say.
std::vector<int> usable_cores();
// How many of those (all of the machine's if the system does not say) can work at once: no more than the quotas of the
// process's control groups allow, rounded up. At least 1. `root` contains the /proc and /sys to read.
int usable_core_count(const std::filesystem::path& root = "/");

// The `count` cores from `cores` that worker `number` runs on. Workers take them in order, so no two share a core
// unless there are too few; then assignment wraps around.
std::vector<int> cores_of_worker(const std::vector<int>& cores, int number, int count);

// Pins the calling thread, and those that it starts from now on, to these cores. Does nothing if `cores` is empty or
// the system refuses: where a thread runs does not affect results.
void stay_on(const std::vector<int>& cores);

}  // namespace gyre
