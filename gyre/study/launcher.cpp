#include "gyre/study/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/study/curves.h"

namespace gyre {
namespace {

std::filesystem::path log_of(const std::filesystem::path& directory) {
  return directory.string() + ".log";
}

std::string last_line(const std::filesystem::path& path) {
  std::string text = read_file(path);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.find_last_of("\n\r") + 1);
}

// Starts a program with stdout and stderr in files; they may be the same.
pid_t spawn(std::vector<std::string> words, const std::string& out, const std::string& errors) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  // A group of its own: a terminal's Ctrl-C reaches the study alone, which passes it on. The signals that the study has
  // blocked are not blocked there.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  pid_t child = 0;
  const int error = posix_spawn(&child, words[0].c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw RunError(fmt::format("{} cannot be started: {}", words[0], std::strerror(error)));
  return child;
}

pid_t start_training(const StudyRun& run, bool resume, const LauncherOptions& options) {
  const auto directory = options.root / run.directory;
  make_directories(directory.parent_path());
  const auto config = directory.string() + ".toml";
  write_file_atomic(config, to_toml(run.config));
  std::vector<std::string> words = {options.program.string(), "train", config, "--out", directory.string()};
  if (resume) words.emplace_back("--resume");
  const std::string log = log_of(directory).string();
  return spawn(std::move(words), log, log);
}

// A child process that can be waited for together with others, and that hears when the study is stopped.
class Child {
 public:
  Child(pid_t process, const LauncherOptions& options)
      : process_(process),
        descriptor_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))),
        on_stop_(std::in_place, options.stop, Kill{this, SIGINT}),
        on_abandon_(std::in_place, options.abandon, Kill{this, SIGKILL}) {
    if (descriptor_ >= 0) return;
    const int error = errno;
    kill(process_, SIGKILL);
    reap();
    throw RunError(fmt::format("a run cannot be watched: {}", std::strerror(error)));
  }
  ~Child() {
    on_stop_.reset();
    on_abandon_.reset();
    close(descriptor_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pollfd poll_entry() const { return {descriptor_, POLLIN, 0}; }
  // Through the descriptor: the number of a process that has ended may be another's by now.
  void signal(int number) const { syscall(SYS_pidfd_send_signal, descriptor_, number, nullptr, 0); }
  // Its exit code, or -1 if a signal ended it.
  int reap() const {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  struct Kill {
    const Child* child;
    int number;
    void operator()() const { child->signal(number); }
  };
  pid_t process_;
  int descriptor_;
  std::optional<std::stop_callback<Kill>> on_stop_, on_abandon_;
};

class Launcher {
 public:
  Launcher(const LauncherOptions& options, const std::function<void(const StudyRun&, RunStatus)>& ended)
      : options_(options), ended_(ended) {}
  // Whatever happens, no run is left behind.
  ~Launcher() {
    for (const auto& [run, child] : running_) child->signal(SIGINT);
    for (const auto& [run, child] : running_) child->reap();
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  size_t running() const { return running_.size(); }
  bool stopped() const { return options_.stop.stop_requested(); }

  void begin(const StudyRun& run) {
    const RunStatus status = status_of(options_.root / run.directory, run.config);
    if (status == RunStatus::Finished || status == RunStatus::Diverged) {
      ended_(run, status);
    } else {
      const pid_t process = start_training(run, status == RunStatus::Begun, options_);
      running_.push_back({&run, std::make_unique<Child>(process, options_)});
    }
  }

  // Blocks until some children have ended; a stop makes them.
  void wait() {
    std::vector<pollfd> entries;
    for (const auto& [run, child] : running_) entries.push_back(child->poll_entry());
    poll(entries.data(), entries.size(), -1);
    for (size_t i = entries.size(); i-- > 0;) {
      if (entries[i].revents == 0) continue;
      const Running ended = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      account(*ended.run, ended.child->reap());
    }
  }

 private:
  struct Running {
    const StudyRun* run;
    std::unique_ptr<Child> child;
  };

  void account(const StudyRun& run, int code) {
    const auto directory = options_.root / run.directory;
    const RunStatus status = status_of(directory, run.config);
    if (status == RunStatus::Finished || status == RunStatus::Diverged) return ended_(run, status);
    if (stopped()) return;
    const std::string what = fmt::format("{}: {}", directory.string(), last_line(log_of(directory)));
    if (code == 2) throw InputError(what);
    throw RunError(what);
  }

  const LauncherOptions& options_;
  const std::function<void(const StudyRun&, RunStatus)>& ended_;
  std::vector<Running> running_;
};

}  // namespace

RunStatus status_of(const std::filesystem::path& directory, const Config& wanted) {
  const auto file = directory / "config.toml";
  if (!std::filesystem::exists(file)) return RunStatus::Absent;
  Config found = load_config(file, {});
  if (wanted.model.vocabulary == 0) found.model.vocabulary = 0;  // it was taken from the data
  found.run.checkpoint_minutes = wanted.run.checkpoint_minutes;  // when it saves makes it no other run
  if (!(found == wanted)) {
    throw InputError(fmt::format("{}: this run was made with other settings than the study's; choose another --out",
                                 directory.string()));
  }
  const std::string end = end_status(directory / "metrics.jsonl");
  if (end == "finished") return RunStatus::Finished;
  return end == "diverged" ? RunStatus::Diverged : RunStatus::Begun;
}

bool launch(const std::vector<StudyRun>& runs, const LauncherOptions& options,
            const std::function<void(const StudyRun&, RunStatus)>& ended) {
  Launcher launcher(options, ended);
  for (const StudyRun& run : runs) {
    while (launcher.running() >= static_cast<size_t>(options.jobs)) launcher.wait();
    if (launcher.stopped()) break;
    launcher.begin(run);
  }
  while (launcher.running() > 0) launcher.wait();
  return !launcher.stopped();
}

std::optional<std::string> diagnostics_of(const StudyRun& run, const LauncherOptions& options) {
  const auto directory = options.root / run.directory;
  const std::filesystem::path kept = directory.string() + ".diagnostics.json";
  if (!std::filesystem::exists(kept)) {
    const std::string out = kept.string() + ".tmp";
    const Child child(
        spawn({options.program.string(), "diagnose", directory.string(), "--json"}, out, log_of(directory).string()),
        options);
    if (child.reap() != 0) {
      if (options.stop.stop_requested()) return std::nullopt;
      throw RunError(fmt::format("{}: cannot be diagnosed: {}", directory.string(), last_line(log_of(directory))));
    }
    rename_path(out, kept);
  }
  return read_file(kept);
}

}  // namespace gyre
