#include "crash/traced_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre::crash {
namespace {

namespace fs = std::filesystem;

constexpr int kNotTraced = 125, kNotStarted = 126;  // exit statuses of a child that got no further
constexpr int kNone = -1;

// A system call that changes files, and the meaning of its arguments.
struct FileCall {
  long number;
  const char* name;
  int descriptor = kNone;  // index of the argument that is the file
  int path = kNone;        // index of the argument that is its path
};

constexpr auto kFileCalls = std::to_array<FileCall>({
    {.number = SYS_write, .name = "write", .descriptor = 0},
    {.number = SYS_writev, .name = "writev", .descriptor = 0},
    {.number = SYS_pwrite64, .name = "pwrite", .descriptor = 0},
    {.number = SYS_pwritev, .name = "pwritev", .descriptor = 0},
    {.number = SYS_ftruncate, .name = "ftruncate", .descriptor = 0},
    {.number = SYS_fallocate, .name = "fallocate", .descriptor = 0},
    {.number = SYS_fsync, .name = "fsync", .descriptor = 0},
    {.number = SYS_fdatasync, .name = "fdatasync", .descriptor = 0},
    {.number = SYS_flock, .name = "flock", .descriptor = 0},
    {.number = SYS_openat, .name = "open to write", .path = 1},
    {.number = SYS_mkdirat, .name = "mkdir", .path = 1},
    {.number = SYS_unlinkat, .name = "unlink", .path = 1},
    {.number = SYS_renameat, .name = "rename", .path = 1},
    {.number = SYS_renameat2, .name = "rename", .path = 1},
#ifdef SYS_rename  // newer architectures have only the calls above
    {.number = SYS_open, .name = "open to write", .path = 0},
    {.number = SYS_creat, .name = "creat", .path = 0},
    {.number = SYS_rename, .name = "rename", .path = 0},
    {.number = SYS_mkdir, .name = "mkdir", .path = 0},
    {.number = SYS_rmdir, .name = "rmdir", .path = 0},
    {.number = SYS_unlink, .name = "unlink", .path = 0},
#endif
});

using CallInfo = __ptrace_syscall_info;

bool opens_to_write(const CallInfo& info, const FileCall& call) {
  if (std::strcmp(call.name, "open to write") != 0) return true;
  return (info.entry.args[call.path + 1] & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
}

// The entry of the call that `info` enters; null if it changes no file. Writes to descriptors 1 and 2 are messages.
const FileCall* file_call(const CallInfo& info) {
  for (const FileCall& call : kFileCalls) {
    if (static_cast<long>(info.entry.nr) != call.number) continue;
    const bool is_message = call.descriptor != kNone && info.entry.args[call.descriptor] <= 2;
    return !is_message && opens_to_write(info, call) ? &call : nullptr;
  }
  return nullptr;
}

std::string text_of(pid_t process, uint64_t address) {
  std::array<char, 512> text{};
  iovec here{text.data(), text.size() - 1};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process
  iovec there{reinterpret_cast<void*>(address), text.size() - 1};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) > 0 ? text.data() : "?";
}

std::string describe(pid_t process, const CallInfo& info) {
  const FileCall* const call = file_call(info);
  if (call == nullptr) return fmt::format("system call {}", info.entry.nr);
  if (call->path != kNone) return fmt::format("{} {}", call->name, text_of(process, info.entry.args[call->path]));
  std::error_code none;
  const auto file = fs::read_symlink(fmt::format("/proc/{}/fd/{}", process, info.entry.args[call->descriptor]), none);
  return fmt::format("{} {}", call->name, file.string());
}

// Runs in the child, which is a copy of a process with threads, so it makes only system calls.
[[noreturn]] void become(char* const* arguments, const char* directory, int output, int messages) {
  if (::chdir(directory) != 0 || ::dup2(output, STDOUT_FILENO) < 0 || ::dup2(messages, STDERR_FILENO) < 0) {
    ::_exit(kNotStarted);
  }
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(kNotTraced);
  ::raise(SIGSTOP);  // the tracer takes over
  ::execv(arguments[0], arguments);
  ::_exit(kNotStarted);
}

// Follows one process from its first instruction to its end.
class Tracer {
 public:
  Tracer(pid_t process, const std::optional<KillPoint>& kill) : process_(process), kill_(kill) {}

  Ended run() {
    int status = 0;
    if (!wait(process_, status)) throw RunError("the process to trace is gone");
    if (WIFEXITED(status)) throw RunError("the process cannot be traced, or its directory is not there");
    constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as ptrace(2) wants them
    if (::ptrace(PTRACE_SETOPTIONS, process_, nullptr, reinterpret_cast<void*>(kOptions)) != 0) {
      throw RunError(fmt::format("ptrace: {}", std::strerror(errno)));
    }
    go_on(process_, 0);
    for (;;) {
      const pid_t thread = wait(-1, status);
      if (thread == 0) throw RunError("the traced process is gone");
      if (WIFSTOPPED(status)) {
        stopped(thread, status);
      } else if (thread == process_) {  // reported last, since a process ends with its last thread
        if (WIFEXITED(status)) ended_.code = WEXITSTATUS(status);
        return ended_;
      }
    }
  }

 private:
  // Waits for children of this thread only, since other threads trace their own. Returns 0 if there is none.
  static pid_t wait(pid_t which, int& status) {
    for (;;) {
      const pid_t found = ::waitpid(which, &status, __WALL | __WNOTHREAD);
      if (found > 0) return found;
      if (errno != EINTR) return 0;
    }
  }

  // Has no effect on a thread that is being killed.
  static void go_on(pid_t thread, int signal) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as ptrace(2) wants it
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, reinterpret_cast<void*>(static_cast<long>(signal)));
  }

  void stopped(pid_t thread, int status) {
    const int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      at_system_call(thread);
      go_on(thread, 0);
    } else {
      // ptrace's own events have a number, and threads begin with SIGSTOP; neither is passed on.
      const bool is_for_the_process = status >> 16 == 0 && signal != SIGSTOP;
      go_on(thread, is_for_the_process ? signal : 0);
    }
  }

  void at_system_call(pid_t thread) {
    CallInfo info{};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as ptrace(2) wants it
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, reinterpret_cast<void*>(sizeof info), &info) <= 0) return;
    if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
      if (thread == doomed_) ::kill(process_, SIGKILL);
      return;
    }
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    const FileCall* const of_files = file_call(info);
    ++ended_.calls.all;
    if (of_files != nullptr) ++ended_.calls.of_files;
    if (!kill_ || (kill_->of_files && of_files == nullptr)) return;
    if (kill_->number != (kill_->of_files ? ended_.calls.of_files : ended_.calls.all)) return;
    if (of_files != nullptr) ended_.killed_in = of_files->name;
    ended_.killed_at = fmt::format("{} {}", kill_->performed ? "after" : "before", describe(process_, info));
    if (kill_->performed) {
      doomed_ = thread;
    } else {
      ::kill(process_, SIGKILL);  // a call that has not begun is never performed
    }
  }

  pid_t process_;
  std::optional<KillPoint> kill_;
  pid_t doomed_ = 0;  // the process is killed when this thread returns from its call
  Ended ended_;
};

}  // namespace

bool can_trace() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : kNotTraced);
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Ended run_traced(const std::vector<std::string>& command, const fs::path& directory,
                 const std::optional<KillPoint>& kill) {
  const fs::path output = directory / "output", messages = directory / "messages";
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  Ended ended;
  {
    const OutputFile to_output(output, O_WRONLY | O_CREAT | O_TRUNC),
        to_messages(messages, O_WRONLY | O_CREAT | O_TRUNC);
    const pid_t process = ::fork();
    if (process < 0) throw RunError(fmt::format("fork: {}", std::strerror(errno)));
    if (process == 0) {
      become(arguments.data(), directory.c_str(), to_output.descriptor(), to_messages.descriptor());
    }
    ended = Tracer(process, kill).run();
  }
  if (ended.code == kNotStarted) throw RunError(fmt::format("{}: cannot be started", command.front()));
  ended.output = read_file(output);
  ended.messages = read_file(messages);
  return ended;
}

}  // namespace gyre::crash
