#include "gyre/core/cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace gyre {

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

int usable_core_count() {
  const size_t usable = usable_cores().size();
  return std::max(1, static_cast<int>(usable > 0 ? usable : std::thread::hardware_concurrency()));
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
