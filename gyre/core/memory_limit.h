// How much memory this process may use: what the machine has left, what its control groups allow, and its resource
// limits (ulimit).
#pragma once

#include <filesystem>
#include <limits>
#include <string>

namespace gyre {

struct MemoryLimit {
  double bytes = std::numeric_limits<double>::infinity();
  std::string what;  // "this machine has 22.1 GiB of memory available"; empty without a limit
};

// The process's resident memory, its libraries included; 0 if unknown.
double resident_bytes();
// The largest resident memory so far; 0 if unknown.
double peak_resident_bytes();

// The tightest of these limits. `root` contains the /proc and /sys to read; missing files impose no limit.
MemoryLimit memory_limit(const std::filesystem::path& root = "/");

}  // namespace gyre
