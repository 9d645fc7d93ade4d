#include "gyre/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/data/dataset.h"
#include "gyre/report/metrics.h"
#include "gyre/report/trace.h"
#include "gyre/runtime/executor.h"
#include "gyre/schedule/delay.h"
#include "gyre/train/batches.h"
#include "gyre/train/build.h"
#include "gyre/train/drains.h"
#include "gyre/train/evaluate.h"
#include "gyre/train/measurements.h"
#include "gyre/train/model_identity.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/step_recorder.h"

namespace gyre {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostTracedActions = 1'000'000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The configuration of this session, resolved: from the file, or from the run that is resumed.
Config session_config(const TrainOptions& options, const RunDirectory& run) {
  if (!options.resume && run.has_run()) {
    throw InputError(fmt::format("{}: a run is here already; continue it with --resume, or choose another --out",
                                 run.root().string()));
  }
  const auto file = options.config.empty() ? run.config() : options.config;
  if (options.config.empty() && !run.has_run()) {
    throw InputError(fmt::format("{}: no run to resume is here; give a CONFIG.toml to start one", run.root().string()));
  }
  return load_config(file, options.overrides);
}

// One run in one process.
class Training {
 public:
  Training(const TrainOptions& options, Config config, Progress& progress)
      : options_(options),
        run_(options.out, options.files),
        config_(std::move(config)),
        dataset_(Dataset::open(config_.data.tokens)),
        progress_(progress) {
    resolve_vocabulary(config_, dataset_.vocabulary());
    pipeline_ = build_pipeline(config_);
    executor_ = make_executor(config_.pipeline.executor);
    train_batches_ = train_batches(config_, dataset_);
    if (config_.run.eval_every > 0) val_batches_ = validation_batches(config_, dataset_);
    plan_ = {config_.run.updates, config_.run.eval_every, config_.run.checkpoint_every, config_.run.drains};
  }

  TrainResult run() {
    const DirectoryLock lock(run_.root(), options_.files);
    if (options_.resume) restore();
    run_.create(config_);
    metrics_ = std::make_unique<MetricsWriter>(run_.metrics(), options_.files);
    progress_.start(config_.run.updates, done_);
    try {
      while (done_ < config_.run.updates && !interrupted_) run_segment();
    } catch (const Divergence&) {
      end("diverged");
      throw;
    } catch (const Error&) {
      end("failed");
      throw;
    }
    result_.finished = !interrupted_;
    end(interrupted_ ? "interrupted" : "finished");
    return result_;
  }

 private:
  void restore() {
    const auto latest = latest_checkpoint(run_.checkpoints());
    if (!latest) {
      progress_.message(fmt::format("{}: no checkpoint yet, starting from step 0", run_.root().string()));
      truncate_metrics_after(run_.metrics(), 0, options_.files);
      return;
    }
    const CheckpointState state = load_checkpoint(run_.checkpoints(), *latest);
    check_model_identity(state.model, config_);
    pipeline_->restore(state.weights, state.optimizer, state.step);
    done_ = state.step;
    drains_ = state.drains;
    plan_.extra.insert(plan_.extra.end(), drains_.begin(), drains_.end());
    truncate_metrics_after(run_.metrics(), done_, options_.files);
    result_.step = done_;
    progress_.message(fmt::format("resuming {} at step {}", run_.root().string(), done_));
  }

  // From one drain point to the next, and what is due there.
  void run_segment() {
    const int64_t window = pipeline_->schedule().window;
    StepRecorder recorder(pipeline_->schedule().stages, window, [this](const StepRecord& step) { record(step); });
    Segment segment;
    segment.schedule = &pipeline_->schedule();
    segment.batches = train_batches_.get();
    segment.first_update = done_;
    segment.first_microbatch = done_ * window;
    segment.microbatches = (plan_.next(done_) - done_) * window;
    segment.stop = [this] { return stop_requested(); };
    segment.trace = !options_.trace.empty() && measurements_.traced_actions() < kMostTracedActions;
    last_step_ = Clock::now();
    const SegmentReport report = executor_->run(*pipeline_, segment, recorder);
    measurements_.add(segment, report, train_seconds_);
    account(report);
    compare_with_analysis(report);

    done_ += report.microbatches / window;
    interrupted_ = report.microbatches < segment.microbatches || (stop_requested() && done_ < config_.run.updates);
    if (interrupted_) {
      if (done_ > 0 && plan_.next(done_ - 1) != done_) drains_.push_back(done_);
      metrics_->drain(done_, "interrupt");
    }
    if (val_batches_.source && plan_.evaluates_at(done_)) run_evaluation();
    if (plan_.checkpoints_at(done_) || interrupted_) save();
  }

  bool stop_requested() const { return options_.stop != nullptr && options_.stop->load(); }

  void record(const StepRecord& step) {
    const double now = seconds_since(started_);
    const int64_t step_tokens = pipeline_->schedule().window * train_batches_->tokens_per_batch();
    MetricsStep line;
    line.step = step.step;
    line.loss = step.loss;
    line.lr = pipeline_->options().learning_rate(step.step);
    line.grad_norm = step.grad_norm;
    line.tokens = step.step * step_tokens;
    line.tokens_per_second = static_cast<double>(step_tokens) / std::max(1e-9, seconds_since(last_step_));
    line.seconds = now;
    last_step_ = Clock::now();
    metrics_->step(line);
    progress_.step(step.step, step.loss, static_cast<double>(line.tokens));
    result_.step = step.step;
    result_.loss = step.loss;
    result_.tokens = line.tokens;
  }

  void run_evaluation() {
    const int64_t count = std::min(config_.run.eval_batches, val_batches_.count);
    const double loss = evaluate(*pipeline_, *executor_, *val_batches_.source, count, done_);
    metrics_->eval(done_, loss);
    progress_.message(fmt::format("step {}: validation loss {:.4f}", done_, loss));
    result_.val_loss = loss;
  }

  void save() {
    CheckpointState state;
    state.step = done_;
    state.microbatches = done_ * pipeline_->schedule().window;
    state.tokens = state.microbatches * train_batches_->tokens_per_batch();
    state.seed = static_cast<uint64_t>(config_.run.seed);
    state.drains = drains_;
    state.model = model_identity(config_);
    state.weights = pipeline_->weights();
    state.optimizer = pipeline_->optimizer_state();
    save_checkpoint(run_.checkpoints(), state, static_cast<int>(config_.run.keep_checkpoints), options_.files);
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

  // The delays seen must be those that the schedule's analysis predicts, or the run is not the one that was planned.
  void compare_with_analysis(const SegmentReport& report) const {
    const DelayAnalysis expected = analyse_delays(pipeline_->schedule(), report.microbatches);
    for (size_t stage = 0; stage < report.delay.size(); ++stage) {
      if (report.delay[stage] == expected.delay[stage]) continue;
      throw RunError(
          fmt::format("stage {}: the delays seen differ from the schedule's analysis; this is a fault of gyre, "
                      "please report it with the run's config.toml",
                      stage));
    }
  }

  void end(const std::string& status) {
    for (size_t stage = 0; stage < delay_.size(); ++stage) metrics_->delay(static_cast<int>(stage), delay_[stage]);
    result_.seconds = seconds_since(started_);
    result_.parameters = pipeline_->parameter_count();
    if (train_seconds_ > 0) {
      result_.tokens_per_second =
          static_cast<double>(train_microbatches_ * train_batches_->tokens_per_batch()) / train_seconds_;
      if (config_.pipeline.executor != "replay") result_.bubble_fraction = 1 - busy_seconds_ / worker_seconds_;
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
    if (skipped_ > 0) {
      progress_.message(fmt::format("{} updates of stages were left out: their gradients were not finite", skipped_));
    }
    progress_.finish();
    write_measurements();
  }

  void write_measurements() {
    if (measurements_.empty()) return;
    write_file_atomic(run_.costs(), to_json(measurements_.cost_model(*pipeline_, train_batches_->tokens_per_batch())),
                      options_.files);
    if (options_.trace.empty()) return;
    write_trace(options_.trace, pipeline_->schedule(), measurements_.trace(), options_.files);
    if (measurements_.traced_actions() >= kMostTracedActions) {
      progress_.message(fmt::format("{}: ends at the drain after {} actions; trace a shorter run for the rest",
                                    options_.trace.string(), kMostTracedActions));
    }
  }

  const TrainOptions& options_;
  RunDirectory run_;
  Config config_;
  Dataset dataset_;
  Progress& progress_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<BatchSource> train_batches_;
  ValidationBatches val_batches_;
  std::unique_ptr<MetricsWriter> metrics_;
  DrainPlan plan_;
  std::vector<int64_t> drains_;  // those that interrupts added, for whoever wants to repeat the run
  int64_t done_ = 0;             // updates
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

}  // namespace

TrainResult train(const TrainOptions& options, Progress& progress) {
  const RunDirectory run(options.out);
  Config config = session_config(options, run);
  return Training(options, std::move(config), progress).run();
}

}  // namespace gyre
