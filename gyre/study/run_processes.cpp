#include "gyre/study/run_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

#include "gyre/checkpoint/format/checkpoint_list.h"
#include "gyre/checkpoint/format/manifest.h"
#include "gyre/config/config_changes.h"
#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"
#include "gyre/core/files.h"
#include "gyre/launch/child_process.h"
#include "gyre/model/settings/special_tokens.h"
#include "gyre/study/curves.h"

namespace gyre {
namespace {

std::filesystem::path log_of(const std::filesystem::path& directory) {
  return directory.string() + ".log";
}

// A child's message without the program's name, which this process's own message begins with.
std::string without_name(const std::string& message) {
  constexpr std::string_view kName = "gyre: ";
  return message.starts_with(kName) ? message.substr(kName.size()) : message;
}

// A child's message about the run in `directory`, which it names unless it is about a file there.
std::string named(const std::filesystem::path& directory, const std::string& message) {
  const std::string said = without_name(message);
  return said.starts_with(directory.string()) ? said : fmt::format("{}: {}", directory.string(), said);
}

// What made the run in `directory`, or another gyre command for it, end so: the last that the child said, unless it was
// killed or said nothing. What it said then is about something else, such as its progress. `jobs` of them ran side by
// side.
std::string reason(const ChildEnd& end, const std::filesystem::path& directory, const std::string& command,
                   const std::string& said, int jobs) {
  if (end.signal == 0 && (end.code == kInterrupted || end.code == kTerminated)) {
    return fmt::format("{}: gyre {} was stopped, though the study was not; the same command continues the study",
                       directory.string(), command);
  }
  if (end.signal == 0 && !said.empty()) return named(directory, said);
  std::string text = fmt::format("{}: gyre {} {}", directory.string(), command, describe(end));
  if (end.signal == SIGKILL) text += ", as by the kernel when memory runs out";
  if (end.signal == SIGKILL && jobs > 1) text += ": fewer --jobs need less";
  text += "; the same command continues the study";
  if (!said.empty()) text += fmt::format(" (the last line before: {})", without_name(said));
  return text;
}

// Throws what made a child end so.
[[noreturn]] void fail(const ChildEnd& end, const std::string& what) {
  if (end.signal == 0 && end.code == kBadInput) throw InputError(what);
  throw_run_error(what, end.signal == 0 && end.code == kNoRoom);
}

// A file that is removed in the end, unless it has got another name.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~TemporaryFile() { system_files().remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A child process that is sent SIGINT when the study is stopped, and SIGKILL when it is abandoned.
class Child {
 public:
  // out, log: the child's standard output and standard error.
  Child(std::vector<std::string> words, const OutputFile& out, const OutputFile& log,
        const RunProcessesOptions& options)
      : process_({std::move(words), {}, out.descriptor(), log.descriptor()}),
        on_stop_(options.stop, Kill{&process_, SIGINT}),
        on_abandon_(options.abandon, Kill{&process_, SIGKILL}) {}

  pollfd poll_entry() const { return process_.poll_entry(); }
  void signal(int number) const { process_.signal(number); }
  ChildEnd reap() { return process_.reap(); }

 private:
  struct Kill {
    const ChildProcess* child;
    int number;
    void operator()() const { child->signal(number); }
  };
  ChildProcess process_;
  std::stop_callback<Kill> on_stop_, on_abandon_;
};

std::unique_ptr<Child> start_training(const StudyRun& run, bool resume, const RunProcessesOptions& options) {
  const auto directory = options.root / run.directory;
  make_directories(directory.parent_path());
  const auto config = directory.string() + ".toml";
  write_file_atomic(config, to_toml(run.config));
  std::vector<std::string> words = {options.program.string(), "train", config, "--out", directory.string()};
  if (resume) words.emplace_back("--resume");
  const OutputFile log(log_of(directory), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  return std::make_unique<Child>(std::move(words), log, log, options);
}

// One run's settings, looked at as `gyre train` would before it begins. Leaves no file.
class Check {
 public:
  Check(const StudyRun& run, const RunProcessesOptions& options)
      : directory_(options.root / run.directory),
        config_(options.root / fmt::format(".check-{}.toml", run.arm)),
        log_(log_of(config_.path())) {
    write_file_atomic(config_.path(), to_toml(run.config));
    const OutputFile log(log_.path(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    const std::vector<std::string> words = {options.program.string(), "train", "--check",
                                            config_.path().string(),  "--out", directory_.string()};
    child_.emplace(words, log, log, options);
  }

  // Errors: InputError or RunError, as the run itself would be refused, with all that it is refused for.
  void finish(const RunProcessesOptions& options) {
    const ChildEnd end = child_->reap();
    if ((end.signal == 0 && end.code == 0) || options.stop.stop_requested()) return;
    std::string said = read_file(log_.path(), kAnyLength);
    while (said.ends_with('\n')) said.pop_back();
    fail(end, reason(end, directory_, "train --check", said, options.jobs));
  }

 private:
  std::filesystem::path directory_;
  TemporaryFile config_, log_;
  std::optional<Child> child_;  // ends before they are removed
};

class RunProcesses {
 public:
  RunProcesses(const RunProcessesOptions& options, const std::function<void(const StudyRun&, RunStatus)>& ended)
      : options_(options), ended_(ended) {
    if (options_.save != nullptr) options_.save->lower();  // when it was raised, no run was under way
  }
  // Ends all running children, also after an exception.
  ~RunProcesses() {
    for (const auto& [run, child] : running_) child->signal(SIGINT);
    for (const auto& [run, child] : running_) child->reap();
  }
  RunProcesses(const RunProcesses&) = delete;
  RunProcesses& operator=(const RunProcesses&) = delete;

  size_t running() const { return running_.size(); }
  bool stopped() const { return options_.stop.stop_requested(); }

  void begin(const StudyRun& run) {
    const RunStatus status = status_of(options_.root / run.directory, run.config);
    if (status == RunStatus::Finished || status == RunStatus::Diverged) {
      ended_(run, status);
    } else {
      running_.push_back({&run, start_training(run, status == RunStatus::Begun, options_)});
    }
  }

  // Blocks until at least one child has ended, or all have been asked to save. A requested stop makes them end.
  void wait() {
    std::vector<pollfd> entries;
    for (const auto& [run, child] : running_) entries.push_back(child->poll_entry());
    if (options_.save != nullptr) entries.push_back({options_.save->descriptor(), POLLIN, 0});
    poll(entries.data(), entries.size(), -1);
    if (options_.save != nullptr && options_.save->lower()) {
      for (const auto& [run, child] : running_) child->signal(SIGUSR1);
    }
    for (size_t i = running_.size(); i-- > 0;) {
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

  void account(const StudyRun& run, const ChildEnd& end) {
    const auto directory = options_.root / run.directory;
    const RunStatus status = status_of(directory, run.config);
    if (status == RunStatus::Finished || status == RunStatus::Diverged) return ended_(run, status);
    if (stopped()) return;
    fail(end, reason(end, directory, "train", last_line(log_of(directory)), options_.jobs));
  }

  const RunProcessesOptions& options_;
  const std::function<void(const StudyRun&, RunStatus)>& ended_;
  std::vector<Running> running_;
};

}  // namespace

RunStatus status_of(const std::filesystem::path& directory, const Config& of_study) {
  const auto file = directory / "config.toml";
  if (!std::filesystem::exists(file)) return RunStatus::Absent;
  Config found = load_config(file, {}), wanted = of_study;
  leave_as_begun(found.model, wanted.model);
  found.run.checkpoint_minutes = wanted.run.checkpoint_minutes;  // may differ: it decides only when the run saves
  if (!(found == wanted)) {
    throw InputError(
        fmt::format("{}: this run was made with other settings than the study's ({}); choose another --out",
                    directory.string(), describe(config_changes(found, wanted))));
  }
  const std::string end = end_status(directory / "metrics.jsonl");
  if (end == "finished") return RunStatus::Finished;
  return end == "diverged" ? RunStatus::Diverged : RunStatus::Begun;
}

std::map<std::string, std::string> data_of(const std::filesystem::path& directory) {
  const auto checkpoints = directory / "checkpoints";
  try {
    const auto step = latest_checkpoint(checkpoints);
    if (step) return parse_manifest(read_file(checkpoint_path(checkpoints, *step) / "manifest.json")).record.data;
  } catch (const Error&) {  // whoever needs the checkpoint says what is wrong with it
  }
  return {};
}

bool check_runs(const std::vector<StudyRun>& runs, const RunProcessesOptions& options) {
  std::deque<Check> checks;
  const auto finish_first = [&] {
    checks.front().finish(options);
    checks.pop_front();
  };
  for (const StudyRun& run : runs) {
    if (options.stop.stop_requested()) break;
    if (status_of(options.root / run.directory, run.config) != RunStatus::Absent) continue;
    if (checks.size() >= static_cast<size_t>(options.jobs)) finish_first();
    checks.emplace_back(run, options);
  }
  while (!checks.empty()) finish_first();
  return !options.stop.stop_requested();
}

bool perform_runs(const std::vector<StudyRun>& runs, const RunProcessesOptions& options,
                  const std::function<void(const StudyRun&, RunStatus)>& ended) {
  RunProcesses launcher(options, ended);
  for (const StudyRun& run : runs) {
    while (launcher.running() >= static_cast<size_t>(options.jobs)) launcher.wait();
    if (launcher.stopped()) break;
    launcher.begin(run);
  }
  while (launcher.running() > 0) launcher.wait();
  return !launcher.stopped();
}

std::filesystem::path diagnostics_file(const StudyRun& run, const std::filesystem::path& root) {
  return (root / run.directory).string() + ".diagnostics.json";
}

std::optional<std::string> diagnostics_of(const StudyRun& run, const RunProcessesOptions& options) {
  if (auto stored = stored_diagnostics_of(run, options.root)) return stored;
  const auto directory = options.root / run.directory;
  const auto file = diagnostics_file(run, options.root);
  const TemporaryFile out(file.string() + ".tmp");
  ChildEnd end;
  uint64_t log_begin = 0;  // training's part of the log ends there
  {
    OutputFile results(out.path(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    const OutputFile log(log_of(directory), O_WRONLY | O_CREAT | O_APPEND);
    log_begin = std::filesystem::file_size(log.path());
    end = Child({options.program.string(), "diagnose", directory.string(), "--json"}, results, log, options).reap();
    results.sync();  // a crash of the machine must not leave an empty file under the name
  }
  if (end.signal != 0 || end.code != 0) {
    if (options.stop.stop_requested()) return std::nullopt;
    const std::string said = last_line(log_of(directory), log_begin);
    throw RunError(fmt::format("{}; the run cannot be diagnosed", reason(end, directory, "diagnose", said, 1)));
  }
  rename_path(out.path(), file);
  return read_file(file);
}

std::optional<std::string> stored_diagnostics_of(const StudyRun& run, const std::filesystem::path& root) {
  const auto file = diagnostics_file(run, root);
  return std::filesystem::exists(file) ? std::optional(read_file(file)) : std::nullopt;
}

}  // namespace gyre
