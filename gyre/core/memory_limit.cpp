#include "gyre/core/memory_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "gyre/core/control_groups.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// The bytes that a line "name:   123 kB" states.
std::optional<double> meminfo(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const auto kilobytes = leading_number(text.substr(at + name.size()));
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

class Tightest {
 public:
  void consider(std::optional<double> bytes, const char* what) {
    if (bytes && *bytes < limit_.bytes) limit_ = {*bytes, what};
  }
  MemoryLimit take() { return std::move(limit_); }

 private:
  MemoryLimit limit_;
};

void consider_machine(const fs::path& root, Tightest& tightest) {
  const std::string text = read_or_empty(root / "proc/meminfo");
  const auto available = meminfo(text, "MemAvailable:");
  if (!available) return;
  const auto swap = meminfo(text, "SwapFree:");
  tightest.consider(*available + swap.value_or(0), "this machine has {} of memory available");
}

void consider_control_groups(const fs::path& root, Tightest& tightest) {
  for (const ControlGroup& group : control_groups(root, "memory")) {
    const auto file = group.directory / (group.is_version_2 ? "memory.max" : "memory.limit_in_bytes");
    tightest.consider(leading_number(read_or_empty(file)), "the control group allows {} of memory");
  }
}

void consider_rlimit(int resource, const char* what, Tightest& tightest) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  tightest.consider(static_cast<double>(limit.rlim_cur), what);
}

}  // namespace

std::string MemoryLimit::with(const std::string& bytes) const {
  return fmt::format(fmt::runtime(what), bytes);
}

double resident_bytes() {
  const std::string text = read_or_empty("/proc/self/statm");  // in pages: total, resident, ...
  const size_t blank = text.find(' ');
  const auto pages = blank == std::string::npos ? std::nullopt : leading_number(std::string_view(text).substr(blank));
  return pages.value_or(0) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// Not getrusage(): its peak may be that of the process which started this one.
double peak_resident_bytes() {
  return meminfo(read_or_empty("/proc/self/status"), "VmHWM:").value_or(0);
}

MemoryLimit memory_limit(const fs::path& root) {
  Tightest tightest;
  consider_machine(root, tightest);
  consider_control_groups(root, tightest);
  consider_rlimit(RLIMIT_AS, "ulimit -v allows {} of memory", tightest);
  consider_rlimit(RLIMIT_DATA, "ulimit -d allows {} of memory", tightest);
  return tightest.take();
}

}  // namespace gyre
