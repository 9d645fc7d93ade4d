// How much memory this process may use: what the machine has left, what its control groups allow, and its resource
// limits (ulimit).
#pragma once

#include <filesystem>
#include <limits>
#include <string>

namespace gyre {

struct MemoryLimit {
  double bytes = std::numeric_limits<double>::infinity();
  std::string what;  // "this machine has {} of memory available"; empty without a limit
  // What, with the bytes in place of {}.
  std::string with(const std::string& bytes) const;
};

// The process's resident memory, its libraries included; 0 if unknown.
double resident_bytes();
// The largest resident memory so far; 0 if unknown.
double peak_resident_bytes();

// The tightest of these limits. `root` contains the /proc and /sys to read; missing files impose no limit.
MemoryLimit memory_limit(const std::filesystem::path& root = "/");

}  // namespace gyre
