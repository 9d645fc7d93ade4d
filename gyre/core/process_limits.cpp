#include "gyre/core/process_limits.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <latch>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "gyre/core/control_groups.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// The limit of processes in the control groups at and above this process; empty if there is none.
std::string limit_of_control_groups(const fs::path& root) {
  std::optional<double> lowest;
  fs::path where;
  for (const ControlGroup& group : control_groups(root, "pids")) {
    const fs::path file = group.directory / "pids.max";
    const auto limit = leading_number(read_or_empty(file));
    if (!limit || (lowest && *limit >= *lowest)) continue;
    lowest = limit;
    where = file;
  }
  return lowest ? fmt::format("{:.0f} of the control group ({})", *lowest, where.string()) : "";
}

}  // namespace

void raise_file_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it fails, the limit stays as it is
}

void check_files_and_stack() {
  constexpr rlim_t kMinFiles = 32, kMinStackBytes = rlim_t{1} << 20;
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kMinFiles) {
    throw RunError(
        fmt::format("no more than {} files may be open at once, and {} are needed; raise the limit (ulimit -n)",
                    limit.rlim_cur, kMinFiles));
  }
  if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kMinStackBytes) {
    throw RunError(fmt::format("the stack is limited to {}, and {} are needed; raise the limit (ulimit -s)",
                               human_bytes(static_cast<double>(limit.rlim_cur)),
                               human_bytes(static_cast<double>(kMinStackBytes))));
  }
}

std::string why_not_started(int error, const fs::path& root) {
  std::string why = std::strerror(error);
  if (error != EAGAIN) return why;
  std::vector<std::string> limits;
  struct rlimit limit {};
  const bool is_root = ::getuid() == 0;  // who may have any number
  if (!is_root && ::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    limits.push_back(fmt::format("{} of this user (ulimit -u)", limit.rlim_cur));
  }
  if (const std::string of_groups = limit_of_control_groups(root); !of_groups.empty()) limits.push_back(of_groups);
  if (limits.empty())
    return why + "; the system has no memory (ulimit -v) or no numbers for more processes and threads";
  return fmt::format("{}; processes and threads are limited to {}: raise the limit that is reached, or use fewer", why,
                     join(limits, " and "));
}

void check_room_for_threads(int threads, size_t bytes, const std::string& what) {
  check_address_space(bytes * static_cast<size_t>(threads), what);
  std::latch end(1);
  std::vector<std::jthread> started;
  try {
    while (started.size() < static_cast<size_t>(threads)) started.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error& error) {
    end.count_down();
    throw RunError(fmt::format("{}: of {} threads only {} can be started: {}", what, threads, started.size(),
                               why_not_started(error.code().value())));
  } catch (...) {  // the threads are joined, so they must not wait for ever
    end.count_down();
    throw;
  }
  end.count_down();
}

void check_address_space(size_t bytes, const std::string& what) {
  if (bytes == 0) return;
  void* const address = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    throw RunError(fmt::format("{}: out of memory: {} more of address space cannot be had; raise its limit (ulimit -v)",
                               what, human_bytes(static_cast<double>(bytes))));
  }
  ::munmap(address, bytes);
}

}  // namespace gyre
