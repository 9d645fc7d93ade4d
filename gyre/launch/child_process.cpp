#include "gyre/launch/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "gyre/core/error.h"
#include "gyre/core/input_file.h"
#include "gyre/core/process_limits.h"

namespace gyre {
namespace {

constexpr int kNotStarted = 127;

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::ranges::any_of(variables, [&](const auto& variable) { return variable.first == name; });
    if (!replaced) environment.emplace_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

// In the child, between fork and exec, where no call may allocate memory or take a lock.
[[noreturn]] void exec_child(const ChildOptions& options, char* const* words, char* const* environment, pid_t parent,
                             int error_pipe) {
  // If the parent is gone already, the signal would never come.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(kNotStarted);
  ::setpgid(0, 0);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  ::dup2(options.out, STDOUT_FILENO);
  ::dup2(options.errors, STDERR_FILENO);
  // The child does not inherit the signals that this process blocks. But it blocks SIGTTOU, so that a terminal does not
  // stop it for writing from the background, and SIGUSR1, until it is ready to handle it.
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGTTOU);
  sigaddset(&held, SIGUSR1);
  ::sigprocmask(SIG_SETMASK, &held, nullptr);
  // A shell starts a script's background jobs with SIGINT ignored, and the child would ignore what this process passes
  // on until it handles it. A SIGHUP that is ignored stays so, as under nohup.
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::signal(number, SIG_DFL);
  ::execve(words[0], words, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(error_pipe, &error, sizeof error);
  ::_exit(kNotStarted);
}

// This process may have been started with SIGCHLD ignored. The system would then reap its children, and nobody would
// learn how they ended.
void take_ends_of_children() {
  struct sigaction action {};
  if (::sigaction(SIGCHLD, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
}

}  // namespace

std::string describe(const ChildEnd& end) {
  if (end.signal == 0) return fmt::format("failed with exit code {}", end.code);
  const char* const name = ::sigabbrev_np(end.signal);
  return name == nullptr ? fmt::format("was killed by signal {}", end.signal)
                         : fmt::format("was killed by SIG{}", name);
}

ChildProcess::ChildProcess(ChildOptions options) {
  const auto fail = [&options](int error) {
    throw RunError(fmt::format("{} cannot be started: {}", options.words[0], why_not_started(error)));
  };
  std::vector<std::string> environment = environment_with(options.variables);
  const std::vector<char*> words = pointers_to(options.words);
  const std::vector<char*> variables = pointers_to(environment);
  int error_pipe[2];  // exec closes the write end, so end of file without data means success
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) fail(errno);
  take_ends_of_children();
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) exec_child(options, words.data(), variables.data(), parent, error_pipe[1]);
  int error = process_ < 0 ? errno : 0;
  ::close(error_pipe[1]);
  while (error == 0 && ::read(error_pipe[0], &error, sizeof error) < 0 && errno == EINTR) {
  }
  ::close(error_pipe[0]);
  if (process_ < 0) fail(error);
  if (error == 0) {
    descriptor_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
    if (descriptor_.ok()) return;
    error = errno;
    ::kill(process_, SIGKILL);
  }
  ::waitpid(process_, nullptr, 0);
  fail(error);
}

ChildProcess::~ChildProcess() {
  if (!reaped_) {
    signal(SIGKILL);
    reap();
  }
}

void ChildProcess::signal(int number) const {
  ::syscall(SYS_pidfd_send_signal, descriptor_.get(), number, nullptr, 0);
}

ChildEnd ChildProcess::reap() {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

std::string last_line(const std::filesystem::path& log, uint64_t begin) {
  constexpr uint64_t kLongestLine = uint64_t{64} << 10;
  const InputFile file(log);
  const uint64_t first = std::max(begin, file.size() - std::min(file.size(), kLongestLine));
  std::string text(file.size() - std::min(file.size(), first), '\0');
  file.read_at(first, text.data(), text.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.find_last_of("\n\r") + 1);
}

}  // namespace gyre
