#include "gyre/runtime/threads_run.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stop_token>
#include <system_error>
#include <utility>

#include "gyre/core/cores.h"
#include "gyre/core/error.h"
#include "gyre/core/explain.h"
#include "gyre/core/process_limits.h"
#include "gyre/core/timing.h"
#include "gyre/tensors/explain_torch.h"
#include "gyre/tensors/thread_count.h"

namespace gyre {

ThreadsRun::ThreadsRun(Pipeline& pipeline, const Segment& segment, SegmentObserver* observer, const WrapTransport& wrap,
                       Elsewhere elsewhere)
    : options_(pipeline.options()),
      segment_(segment),
      observer_(observer),
      elsewhere_(std::move(elsewhere)),
      setup_(pipeline, segment, observer, wrap),
      cores_(options_.pin_workers ? usable_cores() : std::vector<int>()),
      pulses_(setup_.workers.size()),
      watched_(setup_.workers.size()) {}

SegmentReport ThreadsRun::run() {
  try {
    run_to_end();
  } catch (const std::exception& error) {
    end_after(error);
    throw;
  }
  stop_and_join();
  return setup_.conductor ? setup_.conductor->report(seconds_between(started_, Clock::now())) : SegmentReport{};
}

void ThreadsRun::run_to_end() {
  Conductor* const conductor = setup_.conductor.get();
  if (conductor != nullptr) conductor->attend();  // if a drain is due already, nothing is taken in
  start_threads();
  const std::stop_callback wake(segment_.stop, [this] { bell().ring(); });
  for (;;) {
    const uint64_t ticket = bell().ticket();
    if (conductor != nullptr) conductor->attend();
    const bool has_finished = finished();  // read before the error: a worker that fails stores its error before it ends
    if (const auto error = first_error()) std::rethrow_exception(error);
    if (has_finished) return;
    if (elsewhere_.raise_failure) elsewhere_.raise_failure();
    pass_on_notes();
    if (is_time_to_look()) {
      tell_slow_actions("the run waits for it");
      if (conductor != nullptr) find_stall();
    }
    let_look();
    double within = stall_seconds() / 4;
    if (observer_ != nullptr) within = std::min(within, seconds_between(Clock::now(), observer_->next_look()));
    bell().wait_for(ticket, std::chrono::duration<double>(within));
  }
}

// Waits until the workers have returned from the actions that they are in. The thread of one that does not cannot be
// ended, and what it uses cannot be destroyed: then the process has to end.
void ThreadsRun::end_after(const std::exception& error) {
  const std::string what = explain_torch(error);
  if (elsewhere_.report_failure) elsewhere_.report_failure(error);
  tell_to_stop();
  for (Watched& watched : watched_) watched.told = false;  // it is told again, with the error
  auto since = Clock::now();
  for (;;) {
    const uint64_t ticket = bell().ticket();
    if (all_have_ended()) return;
    if (is_time_to_look()) {
      tell_slow_actions(fmt::format("the run has failed, and ends when it returns: {}", what));
      if (was_away_) since = last_look_;
      const double waited = seconds_between(since, last_look_);
      const double patience = segment_.stop.stop_requested() ? stall_seconds() : drain_deadline(stall_seconds());
      if (waited >= patience) {
        give_up({fmt::format("{}; {:.0f} s later not all workers have returned: {}", what, waited,
                             to_string(status().workers)),
                 exit_code_of(error)});
      }
    }
    bell().wait_for(ticket, std::chrono::duration<double>(stall_seconds() / 4));
  }
}

void ThreadsRun::give_up(const Error& why) {
  if (std::exchange(told_stuck_, true)) return;
  if (observer_ != nullptr) {
    observer_->on_stuck(why);
  } else if (elsewhere_.abandon) {
    elsewhere_.abandon(why);
  }
}

bool ThreadsRun::finished() const {
  if (setup_.conductor) return setup_.conductor->finished();
  return std::all_of(pulses_.begin(), pulses_.end(), [](const Pulse& pulse) { return pulse.ended.load(); });
}

void ThreadsRun::start_threads() {
  for (size_t index = 0; index < setup_.workers.size(); ++index) {
    try {
      threads_.emplace_back([this, index] { work(index); });
    } catch (const std::system_error& error) {
      throw RunError(fmt::format("the thread of worker {} of {} cannot be started: {}", setup_.workers[index]->number(),
                                 segment_.schedule->workers, why_not_started(error.code().value())));
    }
  }
}

// The body of a worker's thread.
void ThreadsRun::work(size_t index) {
  const c10::NoGradGuard no_grad;
  Worker& worker = *setup_.workers[index];
  Doorbell& own_bell = setup_.bells.of(worker.number());
  Pulse& pulse = pulses_[index];
  try {
    stay_on(cores_of_worker(cores_, worker.number(), options_.threads_per_worker));  // before it starts threads
    use_threads(options_.threads_per_worker);
    while (!stopping_.load()) {
      const uint64_t ticket = own_bell.ticket();
      const Worker::Step step = worker.try_step();
      pulse.turns.fetch_add(1);
      if (step == Worker::Step::Finished) break;
      if (step == Worker::Step::Done) {
        steps_.fetch_add(1);
        continue;
      }
      pulse.ticket = ticket;
      pulse.waiting = true;
      pulse.begin_wait(worker.waits_for());
      if (!stopping_.load()) own_bell.wait(ticket);
      pulse.end_wait();
      pulse.waiting = false;
    }
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
  pulse.ended = true;
  bell().ring();
}

std::exception_ptr ThreadsRun::first_error() {
  const std::lock_guard lock(error_mutex_);
  return error_;
}

// Whether a worker is inside an action or about to be. One whose bell has rung no longer counts as waiting.
bool ThreadsRun::is_inside(size_t index) const {
  const Pulse& pulse = pulses_[index];
  const Doorbell& own_bell = setup_.bells.of(setup_.workers[index]->number());
  return !pulse.ended && !(pulse.waiting && own_bell.ticket() == pulse.ticket);
}

// If so, the caller looks now.
bool ThreadsRun::is_time_to_look() {
  const auto now = Clock::now();
  const double since_look = seconds_between(last_look_, now);
  if (since_look < stall_seconds() / 8) return false;
  last_look_ = now;
  // Time in which this thread did not look says nothing about the others: the process was stopped, or printing a
  // message blocked.
  was_away_ = since_look > stall_seconds();
  return true;
}

void ThreadsRun::pass_on_notes() {
  if (observer_ == nullptr || !elsewhere_.take_notes) return;
  for (const std::string& line : elsewhere_.take_notes()) observer_->on_slow_action(line);
}

// A worker that is inside one action for stall_seconds may be slow or stuck: this is reported, and what happens then.
void ThreadsRun::tell_slow_actions(const std::string& then) {
  const auto now = last_look_;
  for (size_t index = 0; index < pulses_.size(); ++index) {
    const uint64_t turns = pulses_[index].turns.load();
    Watched& watched = watched_[index];
    if (!is_inside(index) || turns != watched.turns || was_away_) {
      watched = {turns, now, false};
    } else if (const double seconds = seconds_between(watched.since, now);
               seconds >= stall_seconds() && !watched.told) {
      watched.told = true;
      const Worker& worker = *setup_.workers[index];
      const std::string what = fmt::format("worker {} has been inside {} for {:.0f} s ([pipeline] stall_seconds); {}",
                                           worker.number(), worker.status().action, seconds, then);
      if (observer_ != nullptr) {
        observer_->on_slow_action(what);
      } else if (elsewhere_.note) {
        elsewhere_.note(what);
      }
    }
  }
}

// Nothing computed, no part of a message came and no action finished for stall_seconds, in any process: a stall, which
// waiting cannot end.
void ThreadsRun::find_stall() {
  const auto now = last_look_;
  uint64_t steps = 0, parts = 0;
  bool computing = false;
  std::vector<std::string> lines;
  for (const RankStatus& process : statuses_everywhere()) {
    steps += process.steps;
    parts += process.parts;
    computing |= process.computing;
    const std::string workers = to_string(process.workers);
    const int rank = static_cast<int>(lines.size());
    // A link between two of them may be what stalls, so a user needs to know where they are.
    const std::string name = rank == 0 ? "rank 0" : elsewhere_.name_of(rank);
    lines.push_back(elsewhere_.statuses ? fmt::format("{}: {}", name, workers) : workers);
  }
  const std::string all = fmt::format("{}", fmt::join(lines, "; "));
  if (steps != last_steps_ || was_away_) last_step_ = last_progress_ = now;
  if (computing || parts != last_parts_) last_progress_ = now;
  last_steps_ = steps;
  last_parts_ = parts;
  const double idle = seconds_between(last_progress_, now);
  if (idle >= stall_seconds()) {
    throw RunError(fmt::format("the pipeline stalled: no action for {:.0f} s: {}", idle, all));
  }
  const double without_step = seconds_between(last_step_, now);
  if (segment_.stop.stop_requested() && without_step >= drain_deadline(stall_seconds())) {
    give_up(RunError(fmt::format("the {} is given up: no action has finished for {:.0f} s: {}",
                                 segment_.drains_at_stop ? "drain" : "evaluation", without_step, all)));
  }
}

void ThreadsRun::Pulse::begin_wait(int worker) {
  const std::lock_guard lock(mutex_);
  since_ = Clock::now();
  waits_for_ = worker;
}

void ThreadsRun::Pulse::end_wait() {
  const std::lock_guard lock(mutex_);
  waited_[waits_for_] += seconds_between(*since_, Clock::now());
  since_.reset();
}

std::map<int, double> ThreadsRun::Pulse::waited() const {
  const std::lock_guard lock(mutex_);
  std::map<int, double> seconds = waited_;
  if (since_) seconds[waits_for_] += seconds_between(*since_, Clock::now());
  return seconds;
}

RankStatus ThreadsRun::status() const {
  RankStatus status;
  status.steps = steps_.load();
  if (elsewhere_.parts) status.parts = elsewhere_.parts();
  status.memory = setup_.process_memory();
  for (size_t index = 0; index < pulses_.size(); ++index) {
    WorkerStatus& worker = status.workers.emplace_back(setup_.workers[index]->status());
    worker.inside = is_inside(index);
    worker.seconds = seconds_between(started_, Clock::now());
    worker.waited = pulses_[index].waited();
    status.computing |= worker.inside;
  }
  return status;
}

// [rank]
std::vector<RankStatus> ThreadsRun::statuses_everywhere() const {
  std::vector<RankStatus> all = {status()};
  if (!elsewhere_.statuses) return all;
  for (RankStatus& other : elsewhere_.statuses()) all.push_back(std::move(other));
  return all;
}

void ThreadsRun::let_look() {
  if (observer_ != nullptr && Clock::now() >= observer_->next_look()) observer_->on_look(statuses_everywhere());
}

bool ThreadsRun::all_have_ended() const {
  const auto started = pulses_.begin() + static_cast<std::ptrdiff_t>(threads_.size());  // one may not have been
  return std::all_of(pulses_.begin(), started, [](const Pulse& pulse) { return pulse.ended.load(); });
}

void ThreadsRun::tell_to_stop() {
  stopping_ = true;
  for (const auto& worker : setup_.workers) setup_.bells.of(worker->number()).ring();
}

void ThreadsRun::stop_and_join() {
  tell_to_stop();
  threads_.clear();
}

}  // namespace gyre
