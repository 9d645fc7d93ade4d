#include "gyre/train/trainer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "gyre/build/build.h"
#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/runtime/evaluate.h"
#include "gyre/runtime/executor.h"
#include "gyre/train/bookkeeper.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/drains.h"
#include "gyre/train/resume.h"
#include "gyre/train/run_directory.h"

namespace gyre {
namespace {

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

// The result of a run that is complete.
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

// One run in one process: the loop over segments that every rank runs. What one rank does for all is the bookkeeper's.
class Training {
 public:
  Training(const TrainOptions& options, const RunDirectory& run, Config config, ResumePoint from, Progress& progress)
      : options_(options),
        checked_(std::move(config)),
        from_(std::move(from)),
        progress_(progress),
        books_(options, run, checked_, from_, progress) {
    if (options.resume) check_data(from_, run, *checked_.dataset);
    progress_.message(checked_.summary);
  }

  // Builds everything and finds room for it: what it accepts can begin.
  void prepare() {
    plan_ = {config_.run.updates, config_.run.eval_every, config_.run.checkpoint_every, config_.run.drains};
    pipeline_ = build_pipeline(config_, std::move(checked_.schedule));
    executor_ = make_executor(config_.pipeline.executor);
    if (from_.checkpoint) restore();
    books_.check_room(checkpoint_bytes(pipeline_->weights(), pipeline_->optimizer_state()));
    if (options_.resume) books_.say_where_it_goes_on();
  }

  TrainResult run() {
    prepare();
    books_.begin(*pipeline_);
    try {
      // The end of a run that was killed between its last checkpoint and its last line.
      if (done_ == config_.run.updates && evaluates() && from_.record.evaluated != done_) run_evaluation();
      while (done_ < config_.run.updates && !interrupted_) run_segment();
    } catch (const Divergence&) {
      books_.end_early("diverged");
      throw;
    } catch (const std::exception&) {  // libtorch's own, too
      books_.end_early("failed");
      throw;
    }
    return books_.end(interrupted_ ? "interrupted" : "finished");
  }

 private:
  void restore() {
    const CheckpointState& state = *from_.checkpoint;
    try {
      pipeline_->restore(state.weights, state.optimizer, state.step);
    } catch (const InputError& error) {
      const std::string changed = describe(changes_of("optimizer", from_.changes));
      if (changed.empty()) throw;
      throw InputError(
          fmt::format("[optimizer] has changed ({}), and the saved state does not fit it: {}. Set it back, "
                      "or start another run with --out",
                      changed, error.what()));
    }
    done_ = state.step;
    microbatches_ = state.microbatches;
    tokens_ = state.tokens;
    plan_.extra.insert(plan_.extra.end(), state.drains.begin(), state.drains.end());
    from_.checkpoint.reset();  // its tensors are the pipeline's now
  }

  // What ends a run amid its work says what is left of it.
  template <typename Work>
  std::invoke_result_t<Work> telling_how_to_go_on(Work&& work) {
    try {
      return work();
    } catch (const Divergence&) {
      throw;
    } catch (const Error& error) {
      throw RunError(fmt::format("{}; {}", error.what(), books_.how_to_go_on()));
    }
  }

  // From one drain point to the next, and what is due there.
  void run_segment() {
    const Segment segment = next_segment();
    const SegmentReport report =
        telling_how_to_go_on([&] { return executor_->run(*pipeline_, segment, books_.listen_to(segment)); });
    books_.add(segment, report);

    done_ += report.microbatches / pipeline_->schedule().window;
    microbatches_ += report.microbatches;
    tokens_ += report.microbatches * checked_.train_batches->tokens_per_batch();
    interrupted_ = stop_requested() && done_ < config_.run.updates;
    if (interrupted_) {
      books_.drained(done_, "interrupt", plan_.contains(done_));
    } else if (report.microbatches < segment.microbatches) {
      books_.drained(done_, "checkpoint", plan_.contains(done_));
    }
    const bool got_on = report.microbatches > 0;  // not when a signal came while it was evaluated
    if (got_on && evaluates() && plan_.evaluates_at(done_)) run_evaluation();
    if (plan_.checkpoints_at(done_) || interrupted_ || books_.save_is_due()) save();
  }

  Segment next_segment() {
    Segment segment;
    segment.schedule = &pipeline_->schedule();
    segment.batches = checked_.train_batches.get();
    segment.first_update = done_;
    segment.first_microbatch = microbatches_;
    segment.microbatches = (plan_.next(done_) - done_) * pipeline_->schedule().window;
    segment.stop = [this] { return stop_requested() || books_.asks_to_drain(); };
    segment.interrupt = options_.stop;
    segment.trace = books_.traces();
    return segment;
  }

  void run_evaluation() {
    const int64_t count = std::min(config_.run.eval_batches, checked_.val_batches.count);
    const double loss = telling_how_to_go_on([&] {
      return evaluate(*pipeline_, *executor_, *checked_.val_batches.source, count, done_,
                      [this](const std::string& what) { progress_.message(what); });
    });
    books_.evaluated(done_, loss);
  }

  void save() {
    CheckpointState state;
    state.step = done_;
    state.microbatches = microbatches_;
    state.tokens = tokens_;
    state.weights = pipeline_->weights();
    state.optimizer = pipeline_->optimizer_state();
    books_.save(std::move(state));
  }

  bool evaluates() const { return checked_.val_batches.source != nullptr; }
  bool stop_requested() const { return options_.stop.stop_requested(); }

  const TrainOptions& options_;
  CheckedRun checked_;
  const Config& config_ = checked_.config;
  ResumePoint from_;
  Progress& progress_;
  Bookkeeper books_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Executor> executor_;
  DrainPlan plan_;
  int64_t done_ = 0;  // updates
  int64_t microbatches_ = 0;
  int64_t tokens_ = 0;
  bool interrupted_ = false;
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
  if (::access(run.root().c_str(), W_OK | X_OK) != 0) {
    throw InputError(fmt::format("{}: cannot be written to: {}", run.root().string(), std::strerror(errno)));
  }
  Training(options, run, std::move(config), std::move(from), progress).prepare();
}

}  // namespace gyre
