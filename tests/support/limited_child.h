// Asks something in a child process that may start neither a process nor a thread.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>

namespace gyre::testing_support {

// What `holds` returns there; nothing if it cannot be asked. Root may start any number, so its child becomes somebody
// else, which not every root can.
inline std::optional<bool> where_nothing_starts(const std::function<bool()>& holds) {
  constexpr int kNotAsked = 77;
  const pid_t process = ::fork();
  if (process == 0) {
    constexpr uid_t kNobody = 65534;
    const rlimit limit{1, 1};
    if (::getuid() == 0 && ::setuid(kNobody) != 0) ::_exit(kNotAsked);
    if (::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(kNotAsked);
    ::_exit(holds() ? 0 : 1);
  }
  int status = 0;
  if (process < 0 || ::waitpid(process, &status, 0) != process) return std::nullopt;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotAsked) return std::nullopt;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace gyre::testing_support
