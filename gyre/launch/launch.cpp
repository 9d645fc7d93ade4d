#include "gyre/launch/launch.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"
#include "gyre/core/files.h"
#include "gyre/core/private_directory.h"
#include "gyre/core/random_hex.h"
#include "gyre/core/stop_signals.h"
#include "gyre/core/text.h"
#include "gyre/launch/child_process.h"
#include "gyre/launch/rank.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kPrivatePrefix = "gyre-launch-";

// The log files of ranks other than 0.
class Logs {
 public:
  explicit Logs(const LaunchOptions& options) : options_(options) { make_place(); }

  // Makes their directory; again, if somebody has removed it since.
  void make_place() {
    if (!options_.logs.empty()) {
      directory_ = options_.logs;
      make_directories(directory_);
    } else if (std::error_code unknown; !own_ || !fs::is_directory(directory_, unknown)) {
      directory_ = own_.emplace(options_.temporary, kPrivatePrefix).path();
    }
  }

  fs::path of(int rank, int restart) const {
    return directory_ /
           (restart == 0 ? fmt::format("rank-{}.log", rank) : fmt::format("rank-{}.restart-{}.log", rank, restart));
  }
  // Keeps the files, because a message names one of them.
  void keep() {
    if (own_) own_->keep();
  }

 private:
  const LaunchOptions& options_;
  std::optional<PrivateDirectory> own_;
  fs::path directory_;
};

// Throws NoRoom if the disk has no room for the notes by which so many ranks meet. They would wait for it without a
// word.
void check_room(const fs::path& store, int ranks) {
  constexpr size_t kNotesOfOne = size_t{16} << 10;  // mostly its configuration, key by key
  const fs::path trial = store / "trial";
  try {
    write_new_file(trial, std::string(kNotesOfOne * static_cast<size_t>(ranks), '\0'));
  } catch (const NoRoom& error) {
    throw NoRoom(
        fmt::format("{}; the ranks of the run meet there: make room, or set TMPDIR to another place", error.what()));
  }
  system_files().remove(trial);
}

// How far a launch has come with its run, over all attempts.
struct Reached {
  bool claimed = false, begun = false;  // kNotClaimedMark, kNotBegunMark
};

// One attempt: all ranks from their start until the last has ended.
class Attempt {
 public:
  // before: by earlier attempts.
  Attempt(const LaunchOptions& options, Logs& logs, const std::string& job, int restart, Reached before)
      : options_(options),
        logs_(logs),
        restart_(restart),
        before_(before),
        store_(options.temporary, kPrivatePrefix),
        stop_signals_(options.same_signal_within) {
    check_room(store_.path(), options.ranks);
    for (const char* mark : {kNotClaimedMark, kNotBegunMark}) write_new_file(store_.path() / mark, "");
    for (int rank = 0; rank < options.ranks; ++rank) start(rank, job);
  }

  // Blocks until all have ended.
  void wait(SignalQueue& signals) {
    while (std::ranges::any_of(ranks_, &RankProcess::runs)) {
      wait_for_something(signals);
      for (int signal = signals.next(); signal != 0; signal = signals.next()) pass_on(signal);
      reap();
      if (deadline_ && Clock::now() >= *deadline_) kill_all();
    }
    cause_ = find_cause();
  }

  // Whether a signal to stop came.
  bool stopped() const { return stop() != 0; }
  // In this attempt or before.
  Reached reached() const {
    return {before_.claimed || is_gone(kNotClaimedMark), before_.begun || is_gone(kNotBegunMark)};
  }

  // Whether rank 0 failed by itself when all was done, as to print the result: another attempt could do no more. One
  // that was killed then, or another rank that was, leaves the result to another attempt.
  bool failed_when_done() const {
    std::error_code unknown;
    return cause_ != nullptr && cause_->rank == 0 && cause_->end->signal == 0 &&
           fs::exists(store_.path() / kDoneMark, unknown);
  }

  // The launcher's exit code.
  int exit_code() const {
    if (cause_) return cause_->end->signal != 0 ? 1 : cause_->end->code;
    const auto ended = std::ranges::find_if(ranks_, [&](const RankProcess& rank) { return is_stop(*rank.end); });
    // A rank may have heard of the stop from another rank first, without the signal's kind.
    if (!stopped() && ended != ranks_.end()) return ended->end->code;
    return abandoned_ || ended != ranks_.end() ? exit_code_of_stop() : 0;
  }

  // What went wrong; empty if rank 0 has reported it, to the same output as this process.
  std::string complaint() {
    if (!cause_ || rank_zero_has_reported()) return "";
    std::string text = fmt::format("rank {} {}", cause_->rank, describe(*cause_->end));
    if (cause_->rank != 0) {
      const std::string words = last_words(*cause_);
      if (!words.empty()) {
        text += fmt::format(": {} ({})", printable(words), cause_->log.string());
        logs_.keep();
      }
    }
    std::vector<std::string> killed;
    for (const RankProcess& rank : ranks_) {
      if (rank.killed && !abandoned_) killed.push_back(std::to_string(rank.rank));
    }
    if (!killed.empty()) text += fmt::format("; killed, since they went on: {}", join(killed, ", "));
    return text;
  }

 private:
  struct RankProcess {
    int rank = 0;
    fs::path log;
    uint64_t log_begin = 0;  // an earlier launch may have written to it
    std::unique_ptr<ChildProcess> child;
    std::optional<ChildEnd> end;
    bool killed = false;  // by this process

    bool runs() const { return !end; }
    bool has_ended() const {
      pollfd entry = child->poll_entry();
      return ::poll(&entry, 1, 0) == 1;
    }
  };

  void start(int rank, const std::string& job) {
    RankProcess started;
    started.rank = rank;
    ChildOptions child;
    child.words = before_.claimed ? options_.again : options_.command;
    const std::string world = std::to_string(options_.ranks);
    child.variables = {{kRankVariable, std::to_string(rank)},        {kWorldVariable, world},
                       {kLocalRankVariable, std::to_string(rank)},   {kLocalWorldVariable, world},
                       {kStoreVariable, store_.path().string()},     {kJobVariable, job},
                       {kRestartVariable, std::to_string(restart_)}, {kBegunVariable, before_.begun ? "1" : "0"}};
    std::optional<OutputFile> log;
    if (rank != 0) {
      open_log(started, log);
      child.out = child.errors = log->descriptor();
    }
    started.child = std::make_unique<ChildProcess>(std::move(child));
    ranks_.push_back(std::move(started));
  }

  // A restart goes on without a log that cannot be made: it is no reason to give up a run.
  void open_log(RankProcess& rank, std::optional<OutputFile>& log) const {
    try {
      logs_.make_place();
      rank.log = logs_.of(rank.rank, restart_);
      log.emplace(rank.log, O_WRONLY | O_CREAT | O_APPEND);
      rank.log_begin = fs::file_size(rank.log);
    } catch (const Error&) {
      if (restart_ == 0) throw;
      log.emplace("/dev/null", O_WRONLY);
    }
  }

  // Waits for a signal, the end of a rank, or the deadline.
  void wait_for_something(const SignalQueue& signals) const {
    std::vector<pollfd> entries = {signals.poll_entry()};
    for (const RankProcess& rank : ranks_) {
      if (rank.runs()) entries.push_back(rank.child->poll_entry());
    }
    int milliseconds = -1;
    if (deadline_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
      milliseconds = static_cast<int>(std::max<int64_t>(0, left.count()));
    }
    ::poll(entries.data(), entries.size(), milliseconds);
  }

  void pass_on(int signal) {
    if (signal == SIGUSR1) {
      if (ranks_[0].runs()) ranks_[0].child->signal(signal);
      return;
    }
    switch (stop_signals_.take(signal, Clock::now())) {
      case StopSignals::Meaning::Stop:
        for (const RankProcess& rank : ranks_) {
          if (rank.runs()) rank.child->signal(signal);
        }
        break;
      case StopSignals::Meaning::Same:
        break;
      case StopSignals::Meaning::EndAtOnce:
        abandoned_ = true;
        kill_all();
    }
  }

  void kill_all() {
    deadline_.reset();
    for (RankProcess& rank : ranks_) {
      if (!rank.runs() || rank.has_ended()) continue;  // it has ended by itself
      rank.killed = true;
      rank.child->signal(SIGKILL);
    }
  }

  void reap() {
    for (RankProcess& rank : ranks_) {
      if (!rank.runs() || !rank.has_ended()) continue;
      rank.end = rank.child->reap();
      if (rank.killed || is_success(*rank.end)) continue;
      const bool failed = !is_stop(*rank.end);
      if (failed) failed_.push_back(&rank);
      // Without this rank the others cannot end in order. Once the run has begun, ranks that were asked to stop do.
      const bool is_missed = failed || rank.end->signal != 0 || !is_gone(kNotBegunMark);
      if (is_missed && !deadline_ && !abandoned_) deadline_ = Clock::now() + options_.patience;
    }
  }

  // The rank in which the failure began, as far as that can be known: the first of those whose end tells most.
  const RankProcess* find_cause() const {
    const RankProcess* cause = nullptr;
    for (const RankProcess* rank : failed_) {
      if (cause == nullptr || telling(*rank) > telling(*cause)) cause = rank;
    }
    return cause;
  }
  // A rank that ends without a word has noticed that another failed, which says why, and has its exit code
  // (ToldElsewhere). It may end before the other has.
  static int telling(const RankProcess& rank) {
    if (!may_follow_another_failure(*rank.end)) return 2;
    return rank.rank == 0 || !last_words(rank).empty() ? 1 : 0;
  }
  // Of a rank other than 0; nothing if its log cannot be read, which is no reason to stop here.
  static std::string last_words(const RankProcess& rank) {
    try {
      return last_line(rank.log, rank.log_begin);
    } catch (const Error&) {
      return "";
    }
  }

  // Whether rank 0 of this attempt has removed the mark.
  bool is_gone(const char* mark) const {
    std::error_code unknown;
    return !fs::exists(store_.path() / mark, unknown);
  }
  static bool is_success(const ChildEnd& end) { return end.signal == 0 && end.code == 0; }
  // Whether a rank may have ended only because it noticed that another failed.
  static bool may_follow_another_failure(const ChildEnd& end) {
    return end.signal == 0 && (end.code == kFailed || end.code == kNoRoom);
  }
  // The signal that asked to stop; 0: none.
  int stop() const { return stop_signals_.first(); }
  // Whether a rank has ended because it was asked to stop. Before a rank handles a signal, the signal kills it.
  bool is_stop(const ChildEnd& end) const {
    return end.code == kInterrupted || end.code == kTerminated || (stopped() && end.signal == stop());
  }
  int exit_code_of_stop() const { return stop() == SIGINT ? kInterrupted : kTerminated; }

  bool rank_zero_has_reported() const {
    if (cause_->end->signal != 0) return false;
    if (cause_->rank == 0) return true;
    // Bad input and divergence are the same on all ranks.
    const int code = cause_->end->code;
    return (code == kBadInput || code == kDiverged) && !ranks_[0].killed && ranks_[0].end->code == code;
  }

  const LaunchOptions& options_;
  Logs& logs_;
  int restart_;
  Reached before_;
  PrivateDirectory store_;
  std::vector<RankProcess> ranks_;             // not changed once all are started
  std::vector<const RankProcess*> failed_;     // in the order in which they ended
  const RankProcess* cause_ = nullptr;         // one of them, once all have ended
  std::optional<Clock::time_point> deadline_;  // for the ranks that still run
  StopSignals stop_signals_;
  bool abandoned_ = false;
};

// Whether another attempt could succeed.
bool is_worth_another(int exit_code) {
  constexpr int kOthers[] = {0, kBadInput, kDiverged, kNoRoom, kInterrupted, kTerminated};
  return std::ranges::find(kOthers, exit_code) == std::end(kOthers);
}

}  // namespace

int launch_ranks(const LaunchOptions& options, SignalQueue& signals) {
  PrivateDirectory::remove_abandoned(options.temporary, kPrivatePrefix);
  Logs logs(options);
  const std::string job = random_hex(8);
  Reached reached;
  for (int restart = 0;; ++restart) {
    Attempt attempt(options, logs, job, restart, reached);
    attempt.wait(signals);
    reached = attempt.reached();
    const int code = attempt.exit_code();
    const bool again =
        restart < options.max_restarts && is_worth_another(code) && !attempt.stopped() && !attempt.failed_when_done();
    std::string complaint = attempt.complaint();
    if (again) {
      if (complaint.empty()) complaint = "the run failed";  // rank 0 has said why, and of whom
      complaint += fmt::format("; restart {} of {}", restart + 1, options.max_restarts);
    }
    if (!complaint.empty()) options.say(complaint);
    if (!again) return code;
  }
}

}  // namespace gyre
