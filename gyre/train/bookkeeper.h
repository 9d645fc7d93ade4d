// What one rank does for the whole run: it reports progress, writes the metrics, decides when a save is due and makes
// it, and keeps measurements. It computes nothing, and the bits of a run depend on it only through the drains that it
// asks for.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
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
#include "gyre/train/listeners.h"
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
  // All arguments must outlive this object. From now on requests to stop, which are made by `stop`, are announced, and
  // the session's time counts.
  Bookkeeper(const TrainOptions& options, const std::stop_token& stop, const RunDirectory& run,
             const CheckedRun& checked, const ResumePoint& from, Progress& progress, const std::string& attempt);

  // Throws RunError if the disk has no room for a checkpoint of `bytes` bytes.
  void check_room(int64_t bytes) { saver_.check_room(bytes); }
  // Takes over what the checkpoint that the session continues from, known by now, has recorded of the run. `stages`: as
  // the run is cut now; delays recorded with another number of stages are dropped.
  void take_up(int stages);
  // Tells the user where a resumed session continues, which checkpoints are damaged, which steps are made again or lack
  // a record, which keys have changed, and whether more updates raise the learning rate again.
  void say_where_it_goes_on(const Pipeline& pipeline) const;
  // Files change from here on. `pipeline` is what the run trains; optimizer_bytes: [stage], the size of the optimizers'
  // states; map: which process has which workers, null if this process has all.
  void begin(const Pipeline& pipeline, std::vector<int64_t> optimizer_bytes, const RankMap* map);

  // The observer of the segment that is about to run; valid until the next call.
  SegmentObserver& listen_to(const Segment& segment);
  // The same for an evaluation.
  SegmentObserver& listen_to_evaluation();
  // Whether the segment should drain, because a save is due or a background save has failed.
  bool asks_to_drain() const { return asks_to_drain_; }
  // Of how many of the next segment's `microbatches` the times of actions should be recorded.
  int64_t traced_microbatches(int64_t microbatches);
  // Records the report of a segment that has ended. Throws RunError if a background save has failed.
  void add(const Segment& segment, const SegmentReport& report);
  // For a run that has made all its updates: throws Divergence if the last update's loss is not finite, however few
  // updates were skipped, so that such a run is not saved as one that ended well.
  void check_last_loss() const;

  // The pipeline was emptied after `step`; `reason` is "interrupt" or "checkpoint". An unplanned drain changes what an
  // asynchronous run computes, so it is recorded for whoever repeats the run.
  void drained(int64_t step, const std::string& reason, bool planned);
  void evaluated(int64_t step, double loss, std::optional<double> ema_loss);

  // Whether a save is due by the clock or was requested.
  bool save_is_due();
  // "gyre train --resume RUN continues from step 40, the last that was saved".
  std::string how_to_go_on() const { return saver_.how_to_go_on(); }
  std::string how_to_go_back() const { return saver_.how_to_go_back(); }
  // Saves the run at the position in `record`, whose other fields are filled in here, unless that step is saved
  // already. If training goes on, the save may end later, in the background.
  void save(CheckpointRecord record, RunState& state, bool training_goes_on);
  // Waits until no save is under way. Throws RunError if one has failed.
  void wait_for_save();
  // The same when another error ends the run: that error is what counts, so a failed save is ignored.
  void settle_save();

  // Ends the session as "finished" or "interrupted".
  TrainResult end(const std::string& status);
  // Ends the session because of an error with this exit code, as "diverged" or "failed". That error is what counts, so
  // failures in here are ignored: a full disk takes no last lines either.
  void end_early(int exit_code);

 private:
  using Clock = std::chrono::steady_clock;

  bool works_side_by_side() const;  // whether the executor's workers do
  void record(const StepRecord& step);
  void add_memory(const SegmentReport& report, MetricsSegment& line) const;
  void say_whether_rate_rises(const std::function<double(int64_t)>& learning_rate) const;
  void note(const WrittenCheckpoint& saved);
  void note_finished_save();
  void raise_failed_save() const;
  void give_up(const Error& why);
  void record_end(const std::string& status);
  void write_measurements();

  const TrainOptions& options_;
  const RunDirectory& run_;
  const CheckedRun& checked_;
  const Config& config_ = checked_.config;
  const ResumePoint& from_;
  Progress& progress_;
  StopAnnouncer announcer_;
  // Set once the run has begun:
  const Pipeline* pipeline_ = nullptr;
  std::vector<int64_t> optimizer_bytes_;
  const RankMap* map_ = nullptr;
  std::unique_ptr<MetricsExports> exports_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::optional<LiveFile> live_;
  Saver saver_;  // behind what a save in the background uses, so that it has ended before that is destroyed
  std::optional<SegmentListener> listener_;
  std::optional<EvaluationListener> evaluation_;
  bool asks_to_drain_ = false;
  bool trace_is_cut_ = false;
  bool save_asked_ = false;
  double save_wait_ = 0;  // seconds for which training has waited for the current save
  bool goes_on_beside_save_ = false;
  std::exception_ptr failed_save_;  // of a background save
  // For the whole run:
  std::vector<int64_t> drains_;                    // added by interrupts and by the clock
  std::vector<std::map<int64_t, int64_t>> delay_;  // [stage]: delay -> microbatches
  int64_t skipped_ = 0;                            // updates of stages
  // For this session:
  RunMeasurements measurements_;
  TrainResult result_;
  Clock::time_point started_ = Clock::now();
  TrainingRate rate_;
  double train_seconds_ = 0, busy_seconds_ = 0, worker_seconds_ = 0;
  int64_t train_microbatches_ = 0;
};

}  // namespace gyre
