// How the processes of a run watch over each other: beats, silence, clocks, and what is reported when one cannot go on.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "gyre/core/error.h"
#include "gyre/runtime/ranks/ranks.h"
#include "gyre/tensors/explain_torch.h"

namespace gyre {
namespace {

constexpr int kFirstQuestions = 8;  // for rank 0's time, before anything runs
// The part of silence_seconds after which another process may have given this one up: it counts from the last beat.
constexpr double kBeatsAtLeast = 7.0 / 8;

}  // namespace

// Records that `rank` cannot go on or cannot be reached.
void Ranks::fail(int rank, const std::string& why) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    Other& other = others_[static_cast<size_t>(rank)];
    is_first = !failure_;
    if (is_first) {
      const std::string name = other.name.empty() ? fmt::format("rank {}", rank) : other.name;
      const std::string at =
          other.status.workers.empty() ? "" : fmt::format("; it was last at: {}", to_string(other.status.workers));
      const double stopped = other.lost ? stopped_just_now() : 0;
      failure_ = {rank, stopped > 0
                            ? fmt::format("this process was stopped for {:.1f} s, and {} has closed the connection",
                                          stopped, name)
                            : fmt::format("{} {}{}", name, why, at)};
    }
  }
  // Before the others of this process hear of it and end: rank 0 may see this process end before it sees the other.
  if (is_first && rank_ != 0 && rank != 0) report(0, rank, why);
  const std::lock_guard lock(mutex_);
  for (Doorbell* bell : bells_) bell->ring();
}

// For how many seconds this process was stopped just now, long enough for others to give it up; 0 if it was not. Called
// under the lock. A receiver may find the connection closed before the watcher looks again.
double Ranks::stopped_just_now() const {
  const auto now = Clock::now();
  const double away = looked_ ? std::chrono::duration<double>(now - *looked_).count() : 0;
  if (away >= kBeatsAtLeast * silence_seconds_) return away;
  const bool is_recent = stopped_ && std::chrono::duration<double>(now - stopped_->first).count() < silence_seconds_;
  return is_recent ? stopped_->second : 0;
}

void Ranks::lose(int rank, const std::string& why) {
  Other& other = others_[static_cast<size_t>(rank)];
  {
    const std::lock_guard lock(mutex_);
    other.lost = true;
    if (rank == 0 && !failure_) rank_0_tells_ = false;
  }
  fail(rank, why);  // before anyone uses tensors that an aborted channel leaves unset
  for (DeviceChannel* channel : {other.out.get(), other.in.get()}) {
    if (channel != nullptr) channel->abort();
  }
}

void Ranks::report(int to, int about, const std::string& why, int exit_code) {
  Envelope failure{Envelope::Kind::Failure, 0, {}, {}};
  failure.message.values = {static_cast<double>(about), static_cast<double>(exit_code)};
  failure.message.tensors = {to_tensor(why)};
  send(to, std::move(failure));
}

void Ranks::report_failure(const std::string& why) {
  report(0, rank_, fmt::format("cannot go on: {}", why));
}

void Ranks::fail_all(int exit_code) {
  for (int other = 1; other < world(); ++other) report(other, 0, "has ended the run", exit_code);
}

std::string Ranks::name_of(int rank) const {
  const std::lock_guard lock(mutex_);
  return others_[static_cast<size_t>(rank)].name;
}

int Ranks::exit_code() const {
  const std::lock_guard lock(mutex_);
  return exit_code_;
}

std::optional<std::string> Ranks::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_ ? std::optional(failure_->second) : std::nullopt;
}

void Ranks::raise_failure() const {
  if (const auto why = failure()) throw RunError(*why);
}

bool Ranks::nobody_tells() const {
  const std::lock_guard lock(mutex_);
  return !rank_0_tells_;
}

std::vector<RankStatus> Ranks::others() const {
  const std::lock_guard lock(mutex_);
  std::vector<RankStatus> statuses;
  for (size_t other = 0; other < others_.size(); ++other) {
    if (static_cast<int>(other) != rank_) statuses.push_back(others_[other].status);
  }
  return statuses;
}

bool Ranks::others_asked_to_stop() const {
  const std::lock_guard lock(mutex_);
  return asked_to_stop_;
}

ClockOffset Ranks::clock_of_rank_0() const {
  const std::lock_guard lock(mutex_);
  return clock_of_rank_0_;
}

// On rank 0: waits until the others are connected with each other too. If two of them cannot connect, one says so.
void Ranks::hear_of_all() {
  Doorbell bell;
  const Watch watch(*this, bell, {});
  const auto is_over = [this] {
    const std::lock_guard lock(mutex_);
    return failure_ || std::all_of(others_.begin() + 1, others_.end(), [](const Other& o) { return o.has_spoken; });
  };
  for (uint64_t ticket = bell.ticket(); !is_over(); ticket = bell.ticket()) bell.wait(ticket);
}

// Asks one question at a time, so that none waits behind another.
void Ranks::learn_clock() {
  Doorbell bell;
  const Watch watch(*this, bell, {});
  const auto nobody_answers = [this] {
    const std::lock_guard lock(mutex_);
    return failure_ || others_[0].left;
  };
  for (int question = 0; question < kFirstQuestions; ++question) {
    const uint64_t ticket = bell.ticket();
    if (nobody_answers()) return;
    ask_for_time();
    bell.wait(ticket);
  }
}

void Ranks::ask_for_time() {
  Envelope question{Envelope::Kind::Clock, 0, {}, {}};
  question.message.values = {clock_()};
  send(0, std::move(question));
}

// On rank 0, answers a question; elsewhere, takes in the answer.
void Ranks::answer_time(int from, Message message) {
  const double now = clock_();
  if (rank_ == 0) {
    message.values.push_back(now);
    send(from, {Envelope::Kind::Clock, 0, {}, std::move(message)});
    return;
  }
  const std::lock_guard lock(mutex_);
  clock_of_rank_0_.add(message.values.at(0), message.values.at(1), now);
  for (Doorbell* bell : bells_) bell->ring();
}

void Ranks::note(const std::string& line) {
  Envelope note{Envelope::Kind::Note, 0, {}, {}};
  note.message.tensors = {to_tensor(line)};
  send(0, std::move(note));
}

std::vector<std::string> Ranks::take_notes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

Ranks::Watch::Watch(Ranks& ranks, Doorbell& bell, std::function<RankStatus()> status)
    : ranks_(ranks), bell_(bell), tells_(status != nullptr) {
  const std::lock_guard lock(ranks_.mutex_);
  ranks_.bells_.insert(&bell_);
  if (tells_) ranks_.status_ = std::move(status);
}

Ranks::Watch::~Watch() {
  const std::lock_guard lock(ranks_.mutex_);
  ranks_.bells_.erase(&bell_);
  if (tells_) ranks_.status_ = nullptr;
}

// The thread that sends beats and checks that the others send theirs. A process that cannot go on with that ends the
// run, as one that is silent does.
void Ranks::watch(const std::stop_token& stop) {
  try {
    keep_watch(stop);
  } catch (const std::exception& error) {  // also libtorch's
    fail(rank_, fmt::format("cannot go on: {}", explain_torch(error)));
  }
}

void Ranks::keep_watch(const std::stop_token& stop) {
  const auto interval = std::chrono::duration<double>(std::clamp(silence_seconds_ / 8, 0.02, 1.0));
  while (!stop.stop_requested()) {
    look_at_clock();
    send_beats();
    if (rank_ != 0) ask_for_time();
    find_silence();
    std::unique_lock lock(sleep_mutex_);
    sleep_.wait_for(lock, stop, interval, [] { return false; });
  }
}

// Time in which this process did not look says nothing about the others: it was stopped itself.
void Ranks::look_at_clock() {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  const double away = looked_ ? std::chrono::duration<double>(now - *looked_).count() : 0;
  looked_ = now;
  if (away >= kBeatsAtLeast * silence_seconds_) stopped_ = {now, away};
  if (away <= silence_seconds_ / 2) return;
  for (Other& other : others_) other.heard = now;
}

void Ranks::send_beats() {
  Envelope beat{Envelope::Kind::Beat, 0, {}, {}};
  RankStatus status;
  {
    const std::lock_guard lock(mutex_);
    if (status_) {
      status = status_();
    } else {
      status.memory = ProcessMemory::now();
    }
  }
  beat.message.tensors = {to_tensor(to_json(status))};
  for (int other = 0; other < world(); ++other) {
    if (other != rank_ && (rank_ == 0 || other == 0)) send(other, beat);
  }
}

// Silence counts up to the last look at the clock: after that, this process may have been stopped. One that has not
// spoken may still be connecting.
void Ranks::find_silence() {
  for (int number = 0; number < world(); ++number) {
    if (number == rank_ || (rank_ != 0 && number != 0)) continue;
    Other& other = others_[static_cast<size_t>(number)];
    std::chrono::duration<double> silent{0}, most(silence_seconds_);
    {
      const std::lock_guard lock(mutex_);
      if (!other.lost) silent = *looked_ - other.heard;
      if (!other.has_spoken) most += meet_within_;
    }
    if (silent < most) continue;
    lose(number, fmt::format("has said nothing for {:.1f} s ([pipeline] stall_seconds)", silent.count()));
    other.peer->give_up();
  }
}

}  // namespace gyre
