#include "gyre/core/memory_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

std::string read_or_empty(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const InputError&) {
    return "";
  }
}

// The number at the start of `text`, after blanks; empty for "max".
std::optional<double> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

// The bytes that a line "name:   123 kB" states.
std::optional<double> meminfo(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const auto kilobytes = leading_number(text.substr(at + name.size()));
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

class Tightest {
 public:
  void consider(std::optional<double> bytes, const char* format) {
    if (!bytes || *bytes >= limit_.bytes) return;
    limit_ = {*bytes, fmt::format(fmt::runtime(format), human_bytes(*bytes))};
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

// The process's control group and its ancestors, in version 2 ("0::/path") and version 1 ("5:memory:/path").
void consider_control_groups(const fs::path& root, Tightest& tightest) {
  std::string_view lines;
  const std::string text = read_or_empty(root / "proc/self/cgroup");
  for (lines = text; !lines.empty();) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const size_t colon = line.find(':', line.find(':') + 1);
    if (colon == std::string_view::npos) continue;
    const bool is_version_2 = line.substr(0, colon) == "0:";
    if (!is_version_2 && line.find(":memory:") == std::string_view::npos) continue;
    const fs::path mount = root / (is_version_2 ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    for (fs::path group = fs::path(line.substr(colon + 1)).relative_path();; group = group.parent_path()) {
      const auto file = mount / group / (is_version_2 ? "memory.max" : "memory.limit_in_bytes");
      tightest.consider(leading_number(read_or_empty(file)), "the control group allows {} of memory");
      if (group.empty()) break;
    }
  }
}

void consider_rlimit(int resource, const char* format, Tightest& tightest) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  tightest.consider(static_cast<double>(limit.rlim_cur), format);
}

}  // namespace

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
