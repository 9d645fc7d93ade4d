#include "gyre/core/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <thread>

#include "gyre/core/control_groups.h"

namespace gyre {
namespace {

// How many cores' time a control group allows; empty without a limit.
std::optional<double> quota_of(const ControlGroup& group) {
  std::optional<double> time, period;
  if (group.is_version_2) {
    const std::string text = read_or_empty(group.directory / "cpu.max");  // "TIME PERIOD" or "max PERIOD"
    time = leading_number(text);
    period = leading_number(std::string_view(text).substr(std::min(text.find(' '), text.size())));
  } else {
    time = leading_number(read_or_empty(group.directory / "cpu.cfs_quota_us"));  // -1: no limit
    period = leading_number(read_or_empty(group.directory / "cpu.cfs_period_us"));
  }
  const bool limits = time && period && *time > 0 && *period > 0;
  return limits ? std::optional(*time / *period) : std::nullopt;
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

int usable_core_count(const std::filesystem::path& root) {
  const size_t usable = usable_cores().size();
  double count = static_cast<double>(usable > 0 ? usable : std::thread::hardware_concurrency());
  for (const ControlGroup& group : control_groups(root, "cpu")) {
    if (const auto quota = quota_of(group)) count = std::min(count, std::ceil(*quota));
  }
  return std::max(1, static_cast<int>(count));
}

std::vector<int> cores_of_worker(const std::vector<int>& cores, int number, int count) {
  std::vector<int> own;
  if (cores.empty()) return own;
  const size_t first = static_cast<size_t>(number) * static_cast<size_t>(count);
  for (size_t i = 0; i < std::min(static_cast<size_t>(count), cores.size()); ++i) {
    own.push_back(cores[(first + i) % cores.size()]);
  }
  std::sort(own.begin(), own.end());
  return own;
}

void stay_on(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace gyre
