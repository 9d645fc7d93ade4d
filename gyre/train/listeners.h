// What tells the user, while a run works, that it was asked to stop or that workers take long: the listeners to
// segments and evaluations, and the announcer of stops.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/report/progress.h"
#include "gyre/train/live_file.h"
#include "gyre/train/step_recorder.h"

namespace gyre {

// Announces a request to stop on the thread that makes it, so at once, whatever the run is doing.
class StopAnnouncer {
 public:
  // `saved`: the step that the run falls back to if it is abandoned.
  StopAnnouncer(const std::stop_token& stop, int64_t saved, Progress& progress)
      : saved_(saved), progress_(progress), callback_(stop, Announce{this}) {}

  // Tells the user, once.
  void announce();

  void saved(int64_t step) { saved_ = step; }
  int64_t saved() const { return saved_.load(); }

 private:
  struct Announce {
    StopAnnouncer* announcer;
    void operator()() const { announcer->announce(); }
  };

  std::atomic<int64_t> saved_;
  std::once_flag said_;
  Progress& progress_;
  std::stop_callback<Announce> callback_;  // last: it may be called before the constructor returns
};

// Records a segment's steps, and passes on what its executor reports.
class SegmentListener final : public StepRecorder {
 public:
  SegmentListener(int stages, const Segment& segment, std::function<void(const StepRecord&)> record, Progress& progress,
                  LiveFile& live, StopAnnouncer& announcer, std::function<void(const Error&)> give_up,
                  std::function<void(int64_t)> count_skipped);

  // The executor may notice the request before announcer_'s callback runs.
  void on_interrupt() override { announcer_.announce(); }
  void on_drain(int64_t microbatches) override;
  void on_slow_action(const std::string& what) override { progress_.message(what); }
  void on_stuck(const Error& why) override { give_up_(why); }
  void on_divergence(int64_t skipped) override { count_skipped_(skipped); }
  std::chrono::steady_clock::time_point next_look() const override { return live_.next_look(); }
  void on_look(const std::vector<RankStatus>& processes) override { live_.look(processes); }

 private:
  int64_t window_;
  Progress& progress_;
  LiveFile& live_;
  StopAnnouncer& announcer_;
  std::function<void(const Error&)> give_up_;
  std::function<void(int64_t)> count_skipped_;
};

// The same for an evaluation, which has no steps.
class EvaluationListener final : public SegmentObserver {
 public:
  EvaluationListener(Progress& progress, LiveFile& live, std::function<void(const Error&)> give_up)
      : progress_(progress), live_(live), give_up_(std::move(give_up)) {}
  void on_loss(int64_t, double) override {}
  void on_update(int, int64_t, const std::vector<double>&) override {}
  void on_slow_action(const std::string& what) override { progress_.message(what); }
  void on_stuck(const Error& why) override { give_up_(why); }
  std::chrono::steady_clock::time_point next_look() const override { return live_.next_look(); }
  void on_look(const std::vector<RankStatus>& processes) override { live_.look(processes); }

 private:
  Progress& progress_;
  LiveFile& live_;
  std::function<void(const Error&)> give_up_;
};

}  // namespace gyre
