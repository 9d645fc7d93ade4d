// How much memory this process may come to use: what the machine has left, what its control groups allow, and the
// limits of the shell it was started from.
#pragma once

#include <filesystem>
#include <limits>
#include <string>

namespace gyre {

struct MemoryLimit {
  double bytes = std::numeric_limits<double>::infinity();
  std::string what;  // "this machine has 22.1 GiB of memory available"; empty without a limit
};

// What the process holds now, its libraries included; 0 where nobody says.
double resident_bytes();
// The most that it has held at once.
double peak_resident_bytes();

// The tightest of them. `root` is where /proc and /sys are found; what is not there limits nothing.
MemoryLimit memory_limit(const std::filesystem::path& root = "/");

}  // namespace gyre
