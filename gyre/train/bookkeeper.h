// What one rank does for all: it says how the run goes, writes its metrics, says when it is to be saved and saves it,
// and keeps what was measured. It computes nothing, and no bit of a run depends on it but through the drains it asks
// for.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/report/metrics.h"
#include "gyre/report/progress.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/rank_map.h"
#include "gyre/runtime/segment.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/interruption.h"
#include "gyre/train/live_file.h"
#include "gyre/train/measurements.h"
#include "gyre/train/metrics_exports.h"
#include "gyre/train/resume.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/saver.h"
#include "gyre/train/trainer.h"
#include "gyre/train/training_rate.h"

namespace gyre {

class Bookkeeper {
 public:
  // All arguments outlive it. A request to stop is answered from now on, and the time of the session counts.
  Bookkeeper(const TrainOptions& options, const RunDirectory& run, const CheckedRun& checked, const ResumePoint& from,
             Progress& progress, const std::string& attempt);

  // RunError when the disk has no room for a checkpoint of so many bytes.
  void check_room(int64_t bytes) { saver_.check_room(bytes); }
  // What the run, of so many stages, had come to at the point where this session goes on, which is known now.
  void take_up(int stages);
  // Says where a resumed session goes on, and what it does not find.
  void say_where_it_goes_on() const;
  // From here on files change. `pipeline` is what the run trains; optimizer_bytes: [stage], of the optimizers' states;
  // map: which process has which workers, null where this one has all.
  void begin(const Pipeline& pipeline, std::vector<int64_t> optimizer_bytes, const RankMap* map);

  // Who hears the segment that begins, until the next one does.
  SegmentObserver& listen_to(const Segment& segment);
  // The same of an evaluation.
  SegmentObserver& listen_to_evaluation();
  // Whether the segment should drain, since a save has become due.
  bool asks_to_drain() const { return asks_to_drain_; }
  // Whether the segment should keep the times of its actions.
  bool traces() const;
  // What came of it.
  void add(const Segment& segment, const SegmentReport& report);
  // Of a run that has made all its updates. Divergence where the loss of the last is not finite, however few were left
  // out: such a run is not saved as one that has ended well.
  void check_last_loss() const;

  // The pipeline was emptied after `step`, `reason` "interrupt" or "checkpoint". A drain that was not planned changes
  // what an asynchronous run computes; whoever repeats it needs to know.
  void drained(int64_t step, const std::string& reason, bool planned);
  void evaluated(int64_t step, double loss, std::optional<double> ema_loss);

  // Whether a save is due, by the clock or since somebody asks for it.
  bool save_is_due();
  // "gyre train --resume RUN continues from step 40, the last that was saved".
  std::string how_to_go_on() const { return saver_.how_to_go_on(); }
  // Saves the run as it is, at the position that `record` has; the rest of the record is added here. Where training
  // goes on that may end later.
  void save(CheckpointRecord record, RunState& state, bool training_goes_on);
  // Waits until nothing is being saved any more. RunError where it failed.
  void end_save();
  // The same where another error ends the run and is what counts.
  void settle_save();
  // RunError where a save has failed beside training.
  void raise_failed_save() const;

  // The end of the session: "finished" or "interrupted".
  TrainResult end(const std::string& status);
  // An error ends it: "diverged" or "failed". That error is what counts; a disk that is full takes no last lines
  // either.
  void end_early(const std::string& status);

 private:
  using Clock = std::chrono::steady_clock;

  bool works_side_by_side() const;  // the workers
  void record(const StepRecord& step);
  void add_memory(const SegmentReport& report, MetricsSegment& line) const;
  void note(const WrittenCheckpoint& saved);
  void look_for_end_of_save();
  void give_up(const std::string& what);
  void record_end(const std::string& status);
  void write_measurements();

  const TrainOptions& options_;
  const RunDirectory& run_;
  const CheckedRun& checked_;
  const Config& config_ = checked_.config;
  const ResumePoint& from_;
  Progress& progress_;
  StopAnnouncer announcer_;
  Saver saver_;
  // Once the run has begun:
  const Pipeline* pipeline_ = nullptr;
  std::vector<int64_t> optimizer_bytes_;
  const RankMap* map_ = nullptr;
  std::unique_ptr<MetricsExports> exports_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::optional<LiveFile> live_;
  std::optional<SegmentListener> listener_;
  std::optional<EvaluationListener> evaluation_;
  bool asks_to_drain_ = false;
  bool save_asked_ = false;
  double save_wait_ = 0;  // seconds in which training waited for the save that is under way
  bool goes_on_beside_save_ = false;
  std::exception_ptr failed_save_;  // of one beside training
  // Of the whole run.
  std::vector<int64_t> drains_;  // those that interrupts and the clock added
  std::vector<std::map<int64_t, int64_t>> delay_;
  int64_t skipped_ = 0;
  // Of this session.
  RunMeasurements measurements_;
  TrainResult result_;
  Clock::time_point started_ = Clock::now();
  TrainingRate rate_;
  double train_seconds_ = 0, busy_seconds_ = 0, worker_seconds_ = 0;
  int64_t train_microbatches_ = 0;
};

}  // namespace gyre
