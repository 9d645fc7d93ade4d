#include "gyre/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "gyre/build/batches.h"
#include "gyre/build/build.h"
#include "gyre/build/model_identity.h"
#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/report/metrics.h"
#include "gyre/report/trace.h"
#include "gyre/runtime/evaluate.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/settings/executor_kind.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/drains.h"
#include "gyre/train/interruption.h"
#include "gyre/train/measurements.h"
#include "gyre/train/resume.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/saver.h"

namespace gyre {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostTracedActions = 1'000'000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The configuration of this session, resolved: from the file, or from the run that is resumed.
Config session_config(const TrainOptions& options, const RunDirectory& run) {
  if (!options.resume) refuse_to_replace_run(run);
  const auto file = options.config.empty() ? run.config() : options.config;
  if (options.config.empty() && !run.has_run()) {
    throw InputError(
        fmt::format("{}: no run to resume is here (no config.toml); give the CONFIG.toml of one", run.root().string()));
  }
  return load_config(file, options.overrides);
}

// What is there of a run that has nothing left to do.
TrainResult completed(const ResumePoint& from) {
  const MetricsEnd end = from.record.end.value_or(MetricsEnd{});
  TrainResult result;
  result.finished = true;
  result.step = from.step();
  for (const auto& [name, weight] : from.checkpoint->weights) result.parameters += weight.numel();
  result.tokens = from.checkpoint->tokens;
  result.loss = from.record.loss.value_or(std::nan(""));
  result.val_loss = from.record.val_loss;
  result.tokens_per_second = end.tokens_per_second;
  result.bubble_fraction = end.bubble_fraction;
  result.seconds = end.seconds;
  return result;
}

// One run in one process.
class Training {
 public:
  Training(const TrainOptions& options, const RunDirectory& run, Config config, ResumePoint from, Progress& progress)
      : options_(options),
        run_(run),
        checked_(std::move(config)),
        from_(std::move(from)),
        progress_(progress),
        announcer_(options.stop, from_.step(), progress),
        saver_(run_, config_, from_.step(), options.files) {
    if (options.resume) check_data();
    progress_.message(checked_.summary);
  }

  // Builds everything and finds room for it: what it accepts can begin.
  void prepare() {
    plan_ = {config_.run.updates, config_.run.eval_every, config_.run.checkpoint_every, config_.run.drains};
    pipeline_ = build_pipeline(config_, std::move(checked_.schedule));
    executor_ = make_executor(config_.pipeline.executor);
    if (from_.checkpoint) restore();
    saver_.check_room(checkpoint_bytes(pipeline_->weights(), pipeline_->optimizer_state()));
    if (options_.resume) say_where_it_goes_on();
  }

  TrainResult run() {
    prepare();
    // Everything is known to be sound: from here on files change.
    if (options_.resume && is_there(run_.metrics())) {
      continue_metrics(run_.metrics(), done_, to_json(from_.changes), options_.files);
    }
    run_.create(config_);
    // The end of a save that was killed, should no other save follow.
    if (options_.resume) remove_obsolete(run_.checkpoints(), config_.run.keep_checkpoints, options_.files);
    metrics_ = std::make_unique<MetricsWriter>(run_.metrics(), options_.files);
    progress_.message(saver_.describe());
    progress_.start(config_.run.updates, done_);
    try {
      // The end of a run that was killed between its last checkpoint and its last line.
      if (done_ == config_.run.updates && evaluates() && from_.record.evaluated != done_) run_evaluation();
      while (done_ < config_.run.updates && !interrupted_) run_segment();
    } catch (const Divergence&) {
      end_early("diverged");
      throw;
    } catch (const std::exception&) {  // libtorch's own, too
      end_early("failed");
      throw;
    }
    result_.finished = !interrupted_;
    end(interrupted_ ? "interrupted" : "finished");
    return result_;
  }

 private:
  void restore() {
    const CheckpointState& state = *from_.checkpoint;
    pipeline_->restore(state.weights, state.optimizer, state.step);
    done_ = state.step;
    microbatches_ = state.microbatches;
    tokens_ = state.tokens;
    drains_ = state.drains;
    plan_.extra.insert(plan_.extra.end(), drains_.begin(), drains_.end());
    if (state.delay.size() == static_cast<size_t>(pipeline_->schedule().stages)) delay_ = state.delay;
    skipped_ = state.skipped;
    result_.step = done_;
    result_.tokens = tokens_;
    result_.loss = from_.record.loss.value_or(std::nan(""));
    result_.val_loss = from_.record.val_loss;
    from_.checkpoint.reset();  // its tensors are the pipeline's now
  }

  // Metrics will begin anew where the checkpoint is, and people hear what that means.
  void say_where_it_goes_on() {
    const std::string root = run_.root().string();
    if (!is_there(run_.metrics())) {
      progress_.message(fmt::format("{}: nothing to resume, starting from step 0", root));
      return;
    }
    std::string text = done_ > 0 ? fmt::format("resuming {} at step {}", root, done_)
                                 : fmt::format("{}: no checkpoint was written, starting from step 0", root);
    const int64_t newest = from_.record.newest_step;
    if (newest > done_) text += fmt::format("; steps {} to {} were not saved and are made again", done_ + 1, newest);
    if (newest == 0 && done_ > 0) text += fmt::format("; steps 1 to {} stay without a record", done_);
    progress_.message(text);
    if (!from_.changes.empty()) progress_.message("changed: " + describe(from_.changes));
  }

  // Tokens and tokenizer must be those that the run was begun with.
  void check_data() const {
    const auto check = [&](const DataIdentity& run) {
      check_identity(run, checked_.dataset->meta().checksums, checked_.dataset->directory(),
                     {kTokenizerFile, kTrainFile, kValFile});
    };
    if (is_there(run_.tokenizer() / kMetaFile)) check(DatasetMeta::load(run_.tokenizer()).checksums);
    if (from_.checkpoint && !from_.checkpoint->data.empty()) check(from_.checkpoint->data);
  }

  // From one drain point to the next, and what is due there.
  void run_segment() {
    const int64_t window = pipeline_->schedule().window;
    Segment segment;
    segment.schedule = &pipeline_->schedule();
    segment.batches = checked_.train_batches.get();
    segment.first_update = done_;
    segment.first_microbatch = microbatches_;
    segment.microbatches = (plan_.next(done_) - done_) * window;
    segment.stop = [this] { return stop_requested() || save_is_due_; };
    segment.interrupt = options_.stop;
    segment.trace = !options_.trace.empty() && measurements_.traced_actions() < kMostTracedActions;
    save_is_due_ = false;
    last_step_ = Clock::now();
    SegmentListener listener(
        pipeline_->schedule().stages, segment, [this](const StepRecord& step) { record(step); }, progress_, announcer_,
        [this](const std::string& what) { give_up(what); });
    const SegmentReport report = executor_->run(*pipeline_, segment, listener);
    measurements_.add(segment, report, train_seconds_);
    account(report);

    done_ += report.microbatches / window;
    microbatches_ += report.microbatches;
    tokens_ += report.microbatches * checked_.train_batches->tokens_per_batch();
    interrupted_ = stop_requested() && done_ < config_.run.updates;
    if (interrupted_) {
      note_drain("interrupt");
    } else if (report.microbatches < segment.microbatches) {
      note_drain("checkpoint");
    }
    if (evaluates() && plan_.evaluates_at(done_)) run_evaluation();
    if (plan_.checkpoints_at(done_) || interrupted_ || saver_.is_due()) save();
  }

  // A drain changes what an asynchronous run computes; whoever repeats it needs to know.
  void note_drain(const std::string& reason) {
    if (done_ > 0 && plan_.next(done_ - 1) != done_) drains_.push_back(done_);
    metrics_->drain(done_, reason);
  }

  bool evaluates() const { return checked_.val_batches.source != nullptr; }
  bool stop_requested() const { return options_.stop.stop_requested(); }

  // A worker does not come back from its action, so nothing that it may touch can be destroyed.
  void give_up(const std::string& what) {
    if (!options_.abandon) return;
    try {
      record_end("failed");
    } catch (const Error&) {  // why the drain is given up is what counts
    }
    options_.abandon(
        RunError(fmt::format("{}; the updates since step {} are lost, continue with gyre train --resume --out {}", what,
                             announcer_.saved(), run_.root().string())));
  }

  void record(const StepRecord& step) {
    const double now = seconds_since(started_);
    const int64_t step_tokens = pipeline_->schedule().window * checked_.train_batches->tokens_per_batch();
    MetricsStep line;
    line.step = step.step;
    line.loss = step.loss;
    line.lr = pipeline_->options().learning_rate(step.step);
    line.grad_norm = step.grad_norm;
    line.tokens = tokens_ + (step.step - done_) * step_tokens;
    line.tokens_per_second = static_cast<double>(step_tokens) / std::max(1e-9, seconds_since(last_step_));
    line.seconds = now;
    last_step_ = Clock::now();
    metrics_->step(line);
    progress_.step(step.step, step.loss, static_cast<double>(line.tokens));
    result_.step = step.step;
    result_.loss = step.loss;
    result_.tokens = line.tokens;
    // The clock is asked at an update's end alone, so that every segment gets on.
    if (saver_.is_due()) save_is_due_ = true;
  }

  void run_evaluation() {
    const int64_t count = std::min(config_.run.eval_batches, checked_.val_batches.count);
    const double loss = evaluate(*pipeline_, *executor_, *checked_.val_batches.source, count, done_,
                                 [this](const std::string& what) { progress_.message(what); });
    metrics_->eval(done_, loss);
    progress_.message(fmt::format("step {}: validation loss {:.4f}", done_, loss));
    result_.val_loss = loss;
  }

  void save() {
    CheckpointState state;
    state.step = done_;
    state.microbatches = microbatches_;
    state.tokens = tokens_;
    state.seed = static_cast<uint64_t>(config_.run.seed);
    state.drains = drains_;
    state.model = model_identity(config_);
    state.delay = delay_;
    state.skipped = skipped_;
    state.data = checked_.dataset->meta().checksums;
    state.weights = pipeline_->weights();
    state.optimizer = pipeline_->optimizer_state();
    metrics_->sync();  // a checkpoint must not know of updates that the metrics lose
    saver_.save(state);
    metrics_->checkpoint(done_);
    announcer_.saved(done_);
  }

  void account(const SegmentReport& report) {
    train_seconds_ += report.seconds;
    train_microbatches_ += report.microbatches;
    for (const int64_t skipped : report.skipped) skipped_ += skipped;
    for (const WorkerReport& worker : report.workers) busy_seconds_ += worker.busy_seconds;
    worker_seconds_ += report.seconds * static_cast<double>(report.workers.size());
    delay_.resize(report.delay.size());
    for (size_t stage = 0; stage < report.delay.size(); ++stage) {
      for (const auto& [delay, count] : report.delay[stage]) delay_[stage][delay] += count;
    }
  }

  // The error that ended the run is what counts; a disk that is full takes no last lines either.
  void end_early(const std::string& status) {
    try {
      end(status);
    } catch (const Error&) {
    }
  }

  void end(const std::string& status) {
    record_end(status);
    if (skipped_ > 0) {
      progress_.message(fmt::format("{} updates of stages were left out: their gradients were not finite", skipped_));
    }
    progress_.finish();
    write_measurements();
  }

  void record_end(const std::string& status) {
    for (size_t stage = 0; stage < delay_.size(); ++stage) metrics_->delay(static_cast<int>(stage), delay_[stage]);
    result_.seconds = seconds_since(started_);
    result_.parameters = pipeline_->parameter_count();
    if (train_seconds_ > 0) {
      result_.tokens_per_second =
          static_cast<double>(train_microbatches_ * checked_.train_batches->tokens_per_batch()) / train_seconds_;
      if (executor_kinds().at(config_.pipeline.executor).side_by_side) {
        result_.bubble_fraction = 1 - busy_seconds_ / worker_seconds_;
      }
    }
    MetricsEnd line;
    line.status = status;
    line.step = result_.step;
    line.loss = result_.loss;
    line.val_loss = result_.val_loss;
    line.tokens = result_.tokens;
    line.tokens_per_second = result_.tokens_per_second;
    line.bubble_fraction = result_.bubble_fraction;
    line.skipped_updates = skipped_;
    line.seconds = result_.seconds;
    metrics_->end(line);
  }

  void write_measurements() {
    if (measurements_.empty()) return;
    write_file_atomic(run_.costs(),
                      to_json(measurements_.cost_model(*pipeline_, checked_.train_batches->tokens_per_batch())),
                      options_.files);
    if (options_.trace.empty()) return;
    write_trace(options_.trace, pipeline_->schedule(), measurements_.trace(), options_.files);
    if (measurements_.traced_actions() >= kMostTracedActions) {
      progress_.message(fmt::format("{}: ends at the drain after {} actions; trace a shorter run for the rest",
                                    options_.trace.string(), kMostTracedActions));
    }
  }

  const TrainOptions& options_;
  const RunDirectory& run_;
  CheckedRun checked_;
  const Config& config_ = checked_.config;
  ResumePoint from_;
  Progress& progress_;
  StopAnnouncer announcer_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<MetricsWriter> metrics_;
  Saver saver_;
  DrainPlan plan_;
  std::vector<int64_t> drains_;  // those that interrupts and the clock added, for whoever wants to repeat the run
  int64_t done_ = 0;             // updates
  int64_t microbatches_ = 0;
  int64_t tokens_ = 0;
  bool save_is_due_ = false;
  bool interrupted_ = false;
  RunMeasurements measurements_;
  TrainResult result_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point last_step_ = Clock::now();
  double train_seconds_ = 0, busy_seconds_ = 0, worker_seconds_ = 0;
  int64_t train_microbatches_ = 0;
  int64_t skipped_ = 0;
  std::vector<std::map<int64_t, int64_t>> delay_;
};

// Whether the run at `from` needs no other update; people hear of it.
bool has_nothing_to_do(const ResumePoint& from, const Config& config, const RunDirectory& run, Progress& progress) {
  if (!is_complete(from, config)) return false;
  progress.message(fmt::format("{}: is at step {} of {} already; nothing to do. To go on: --set run.updates=N",
                               run.root().string(), from.step(), config.run.updates));
  return true;
}

}  // namespace

TrainResult train(const TrainOptions& options, Progress& progress) {
  const RunDirectory run(options.out, options.files);
  Config config = session_config(options, run);
  std::optional<DirectoryLock> lock;
  ResumePoint from;
  if (options.resume && is_there(run.root())) {
    lock.emplace(run.root(), options.files);
    from = find_resume_point(run, config);
    if (has_nothing_to_do(from, config, run, progress)) return completed(from);
  }
  Training training(options, run, std::move(config), std::move(from), progress);
  if (!lock) lock.emplace(run.root(), options.files);
  if (!options.resume) refuse_to_replace_run(run);  // another process may have been faster
  return training.run();
}

void check(const TrainOptions& options, Progress& progress) {
  const RunDirectory run(options.out, options.files);
  Config config = session_config(options, run);
  if (!options.resume || !is_there(run.root())) {
    progress.message(CheckedRun(std::move(config)).summary);
    return;
  }
  ResumePoint from = find_resume_point(run, config);
  if (has_nothing_to_do(from, config, run, progress)) return;
  Training(options, run, std::move(config), std::move(from), progress).prepare();
}

}  // namespace gyre
