#include "gyre/train/trainer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "gyre/build/build.h"
#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/explain.h"
#include "gyre/core/files.h"
#include "gyre/core/random_hex.h"
#include "gyre/core/text.h"
#include "gyre/runtime/evaluate.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/processes_executor.h"
#include "gyre/tensors/explain_torch.h"
#include "gyre/train/bookkeeper.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/drains.h"
#include "gyre/train/follower.h"
#include "gyre/train/initial_weights.h"
#include "gyre/train/metrics_exports.h"
#include "gyre/train/resume.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/run_state.h"
#include "gyre/train/session.h"
#include "gyre/train/summary.h"

namespace gyre {
namespace {

// The result of a run that is complete.
TrainResult completed(const ResumePoint& from, const Config& config) {
  TrainResult result{from.record.end.value_or(MetricsEnd{})};
  result.finished = true;
  result.is_past_target = from.step() > config.run.updates;
  result.step = from.step();
  result.parameters = from.checkpoint->parameter_count();
  result.tokens = from.checkpoint->record().tokens;
  result.loss = from.record.loss.value_or(std::nan(""));
  result.val_loss = from.record.val_loss;
  result.ema_val_loss = from.record.ema_val_loss;
  return result;
}

void say_idle_cores(const Config& config, int workers_here, Progress& progress) {
  const std::string line = idle_cores(config, workers_here);
  if (!line.empty()) progress.message(line);
}

// Nobody shall wait for the data to be told what is wrong elsewhere, or wonder what takes long. is_new: no checkpoint
// says where to go on. Refers to the other arguments.
DataReading reading_of_data(const TrainOptions& options, const RunDirectory& run, bool is_new, Progress& progress) {
  const auto begins = [&, is_new](const Config& config, const Dataset& data) {
    if (!options.resume) refuse_to_replace_run(run);
    if (is_new) open_initial_weights(config);
    check_exports(config, options.resume && is_there(run.metrics()));
    constexpr uint64_t kMuch = uint64_t{1} << 30;  // takes seconds
    const auto bytes = static_cast<double>(data.bytes());
    if (data.bytes() >= kMuch) progress.message(fmt::format("reading {} of tokens, to check them", human_bytes(bytes)));
  };
  return {begins, options.stop};
}

DoneBefore done_before(const ResumePoint& from) {
  if (!from.checkpoint) return {};
  return {from.step(), from.checkpoint->record().tokens};
}

// One run, in one process or as rank 0 of several: the loop over segments. The bookkeeper does all reporting and
// writing.
class Training {
 public:
  // attempt: the note that other processes look for in the run's directory.
  Training(const TrainOptions& options, const RunDirectory& run, Config config, ResumePoint from, Progress& progress,
           std::string attempt = {})
      : options_(options),
        run_(run),
        checked_(std::move(config), done_before(from), reading_of_data(options, run, !from.checkpoint, progress)),
        from_(std::move(from)),
        progress_(progress),
        attempt_(std::move(attempt)),
        books_(options, stop_.get_token(), run, checked_, from_, progress, attempt_) {
    if (options.resume) check_data(from_, run, config_, *checked_.dataset);
    if (!from_.checkpoint) init_ = open_initial_weights(config_);
  }

  // Builds everything, and checks that there is room for checkpoints. If it returns, the run can begin.
  void prepare() {
    progress_.message(checked_.summary);
    plan_ = DrainPlan(config_.run);
    if (options_.ranks != nullptr) map_.emplace(checked_.schedule.workers, options_.ranks->world());
    say_idle_cores(config_, workers_of_host(), progress_);
    pipeline_ = build_pipeline(config_, std::move(checked_.schedule), map_ ? map_->workers_of(0) : WorkerRange{},
                               options_.process);
    meet_others();
    if (map_) state_->find_directories(attempt_, config_.run.shared_directory);
    if (state_->has_parts()) progress_.message("directories " + state_->describe_directories());
    restore();
    const ShareSizes sizes = state_->sizes();
    optimizer_bytes_ = sizes.optimizer_bytes;
    books_.check_room(sizes.file_bytes);
    state_->check_room();
    if (options_.resume) books_.say_where_it_goes_on(*pipeline_);
  }

  TrainResult run() {
    try {
      prepare();
      books_.begin(*pipeline_, optimizer_bytes_, map_ ? &*map_ : nullptr);
      state_->begin(damaged_steps());
      if (options_.on_begun) options_.on_begun();
      // A run at its last update that has not ended, for example since it was killed, may lack its last evaluation.
      if (done_ == config_.run.updates && evaluates() && from_.record.evaluated != done_) run_evaluation();
      while (done_ < config_.run.updates && !interrupted_) run_segment();
      books_.wait_for_save();
    } catch (const std::exception& error) {  // also libtorch's
      const int exit_code = exit_code_of(error);
      books_.end_early(exit_code);  // before the others are told to end: they may still be writing
      if (executor_) executor_->fail_run(exit_code);
      throw;
    }
    executor_->end_run(interrupted_ ? RunEnd::Interrupted : RunEnd::Finished);
    return books_.end(interrupted_ ? "interrupted" : "finished");
  }

 private:
  // As many as all processes of this host have if each has as many as this one.
  int workers_of_host() const {
    if (!map_) return checked_.schedule.workers;
    const WorkerRange own = map_->workers_of(0);
    return (own.end - own.begin) * options_.process.count;
  }

  // Makes the executor and the run's state, after meeting the other processes if there are any.
  void meet_others() {
    if (!map_) {
      executor_ = make_executor(config_.pipeline.executor);
      state_.emplace(run_, *pipeline_, options_.files);
      return;
    }
    meet(*options_.ranks, *map_, checked_, *pipeline_);
    if (!options_.ranks->network().empty()) progress_.message("network    " + options_.ranks->network());
    auto executor = std::make_unique<ProcessesExecutor>(*options_.ranks, *map_);
    state_.emplace(run_, *pipeline_, options_.files, *options_.ranks, *executor,
                   [this](const std::string& line) { progress_.message(line); });
    executor_ = std::move(executor);
  }

  // Restores the newest checkpoint that is sound in every process; without one, begins with the weights of init_, if
  // any.
  void restore() {
    while (from_.checkpoint) {
      try {
        restore_from(*from_.checkpoint);
        break;
      } catch (const DamagedCheckpoint& damage) {
        from_ = find_earlier_point(run_, config_, from_, damage);
      }
    }
    books_.take_up(pipeline_->schedule().stages);
    if (!from_.checkpoint && init_) begin_with_others_weights();
    if (!from_.checkpoint) return;
    const CheckpointRecord& record = from_.checkpoint->record();
    done_ = record.step;
    take_up_skipped(record.skipped_in_a_row);
    microbatches_ = record.microbatches;
    tokens_ = record.tokens;
    checked_.continue_data(record);
    plan_.extra.insert(plan_.extra.end(), record.drains.begin(), record.drains.end());
  }

  // If the number of stages has changed, nobody knows which of them skipped updates: each gets the largest count.
  void take_up_skipped(const std::vector<int64_t>& saved) {
    const auto stages = static_cast<size_t>(pipeline_->schedule().stages);
    auto& in_a_row = pipeline_->conductor().skipped_in_a_row;
    in_a_row = saved;
    if (!saved.empty() && saved.size() != stages) in_a_row.assign(stages, *std::ranges::max_element(saved));
  }

  void begin_with_others_weights() {
    state_->begin_with(*init_);
    progress_.message(fmt::format("weights    of {}, step {}{}", config_.run.init_from, init_->record().step,
                                  has_tokenizer_of_init() ? "" : "; its tokenizer is another than that of the tokens"));
    init_.reset();
  }

  // Whether the data has the tokenizer of the run that weights come from. If not, embeddings are learned anew, which
  // may be what is wanted.
  bool has_tokenizer_of_init() const {
    const auto tokenizer = InitialWeights(config_.run.init_from).run().tokenizer();
    if (!is_there(tokenizer / kMetaFile)) return true;  // it is not known which it was
    try {
      checked_.dataset->check_identity(DatasetMeta::load(tokenizer).checksums, {DataPart::Tokenizer});
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  void restore_from(const CheckpointReader& checkpoint) {
    try {
      state_->restore(checkpoint);
    } catch (const DamagedCheckpoint&) {
      throw;
    } catch (const InputError& error) {
      const std::string changed = describe(changes_of("optimizer", from_.changes));
      if (changed.empty()) throw;
      throw InputError(
          fmt::format("[optimizer] has changed ({}), and the saved state does not fit it: {}. Set it back, "
                      "or start another run with --out",
                      changed, error.what()));
    }
  }

  // Runs `work`. An error that ends the run in the middle of it also says what is left and how to continue.
  template <typename Work>
  std::invoke_result_t<Work> telling_how_to_go_on(Work&& work) {
    try {
      return work();
    } catch (const Divergence& divergence) {
      books_.settle_save();
      throw Divergence(divergence.what() + books_.how_to_go_back());
    } catch (const std::exception& error) {  // also libtorch's
      books_.settle_save();
      throw_run_error(fmt::format("{}; {}", explain_torch(error), books_.how_to_go_on()), is_no_room(error));
    }
  }

  // Runs to the next drain point, and does what is due there.
  void run_segment() {
    const Segment segment = next_segment();
    const SegmentReport report =
        telling_how_to_go_on([&] { return executor_->run(*pipeline_, segment, books_.listen_to(segment)); });
    books_.add(segment, report);

    done_ += report.microbatches / pipeline_->schedule().window;
    microbatches_ += report.microbatches;
    tokens_ += report.microbatches * checked_.train_batches->tokens_per_batch();
    if (done_ == config_.run.updates) telling_how_to_go_on([&] { books_.check_last_loss(); });
    interrupted_ = stop_requested() && done_ < config_.run.updates;
    if (interrupted_) {
      books_.drained(done_, "interrupt", plan_.contains(done_));
    } else if (report.microbatches < segment.microbatches) {
      books_.drained(done_, "checkpoint", plan_.contains(done_));
    }
    const bool got_on = report.microbatches > 0;  // false if a signal came during an evaluation
    if (got_on && evaluates() && plan_.evaluates_at(done_)) run_evaluation();
    const bool is_due = books_.save_is_due();  // asked in any case: a request is answered by whatever save comes
    if (plan_.checkpoints_at(done_) || interrupted_ || is_due) save();
  }

  Segment next_segment() {
    Segment segment;
    segment.schedule = &pipeline_->schedule();
    segment.batches = checked_.train_batches.get();
    segment.first_update = done_;
    segment.first_microbatch = microbatches_;
    segment.microbatches = (plan_.next(done_) - done_) * pipeline_->schedule().window;
    segment.stop = stop_.get_token();
    segment.wants_drain = [this] {
      take_over_stop();
      return books_.asks_to_drain();
    };
    segment.traced_microbatches = books_.traced_microbatches(segment.microbatches);
    return segment;
  }

  void run_evaluation() {
    const auto loss_of = [&](ModelWeights weights) {
      return telling_how_to_go_on([&] {
        return evaluate(*pipeline_, *executor_, *checked_.val_batches.source, checked_.val_batches.count, done_,
                        weights, &books_.listen_to_evaluation(), stop_.get_token());
      });
    };
    const double loss = loss_of(ModelWeights::Trained);
    std::optional<double> ema_loss;
    if (config_.optimizer.ema_decay > 0) ema_loss = loss_of(ModelWeights::Ema);
    books_.evaluated(done_, loss, ema_loss);
  }

  void save() {
    CheckpointRecord record;
    record.step = done_;
    record.microbatches = microbatches_;
    record.tokens = tokens_;
    const auto& in_a_row = pipeline_->conductor().skipped_in_a_row;
    if (std::ranges::any_of(in_a_row, [](int64_t count) { return count > 0; })) record.skipped_in_a_row = in_a_row;
    books_.save(std::move(record), *state_, !interrupted_ && done_ < config_.run.updates);
  }

  std::vector<int64_t> damaged_steps() const {
    std::vector<int64_t> steps;
    for (const DamagedStep& damaged : from_.damaged) steps.push_back(damaged.step);
    return steps;
  }

  bool evaluates() const { return checked_.val_batches.source != nullptr; }
  // A request that another process got counts as one to this process.
  void take_over_stop() {
    if (options_.ranks != nullptr && options_.ranks->others_asked_to_stop()) stop_.request_stop();
  }
  bool stop_requested() {
    take_over_stop();
    return stop_.stop_requested();
  }

  const TrainOptions& options_;
  const RunDirectory& run_;
  CheckedRun checked_;
  const Config& config_ = checked_.config;
  ResumePoint from_;
  std::optional<CheckpointReader> init_;  // whose weights the run begins with
  Progress& progress_;
  std::string attempt_;
  std::stop_source stop_;  // of this run, whoever asks for it
  std::stop_callback<std::function<void()>> forward_{options_.stop, [this] { stop_.request_stop(); }};
  std::unique_ptr<Pipeline> pipeline_;
  std::optional<RankMap> map_;  // only with several processes
  std::unique_ptr<Executor> executor_;
  std::optional<RunState> state_;
  Bookkeeper books_;  // behind what a save in the background uses, so that it has ended before that is destroyed
  std::vector<int64_t> optimizer_bytes_;  // [stage]
  DrainPlan plan_;
  int64_t done_ = 0;  // updates
  int64_t microbatches_ = 0;
  int64_t tokens_ = 0;
  bool interrupted_ = false;
};

// Where the session begins. Of a run that is complete nothing reads the last checkpoint, so it is checked here: if it
// is damaged, the session begins at the one before it.
ResumePoint find_sound_point(const RunDirectory& run, const Config& config) {
  ResumePoint from = find_resume_point(run, config);
  while (is_complete(from, config)) {
    try {
      from.checkpoint->check();
      return from;
    } catch (const DamagedCheckpoint& damage) {
      from = find_earlier_point(run, config, from, damage);
    }
  }
  return from;
}

// What the user is told of a run that is complete.
std::string nothing_to_do(const ResumePoint& from, const Config& config, const RunDirectory& run) {
  if (from.step() > config.run.updates) {
    return fmt::format(
        "{}: is at step {} and [run] updates is {}; nothing to do. To go on: --set run.updates=N, more than {}",
        run.root().string(), from.step(), config.run.updates, from.step());
  }
  return fmt::format("{}: is at step {} of {} already; nothing to do. To go on: --set run.updates=N",
                     run.root().string(), from.step(), config.run.updates);
}

// A random name that distinguishes this attempt at a run from any other, of this job or another.
std::string name_of_attempt() {
  return fmt::format("-{}", random_hex(8));
}

// In one process, or as rank 0.
TrainResult train_as_leader(const TrainOptions& options, Progress& progress) {
  const RunDirectory run(options.out, options.files);
  run.refuse_parts();
  run.refuse_text();
  Config config = session_config(options, run);
  std::optional<DirectoryLock> lock;
  ResumePoint from;
  if (options.resume && is_there(run.root())) {
    lock.emplace(run.root(), options.files);
    from = find_sound_point(run, config);
    if (is_complete(from, config)) {
      progress.message(nothing_to_do(from, config, run));
      if (options.ranks != nullptr) options.ranks->refuse("", 0);
      return completed(from, config);
    }
  }
  const std::string attempt = options.ranks != nullptr ? name_of_attempt() : "";
  if (options.begun) refuse_lost_run(run, from);
  Training training(options, run, std::move(config), std::move(from), progress, attempt);
  if (!lock) {
    lock.emplace(run.root(), options.files);
    refuse_to_replace_run(run);  // again under the lock: another process may have been faster
  }
  if (options.on_claimed) options.on_claimed();
  if (options.ranks != nullptr) lock->leave_note(attempt);
  return training.run();
}

}  // namespace

TrainResult train(const TrainOptions& options, Progress& progress) {
  if (options.ranks == nullptr) return train_as_leader(options, progress);
  try {
    return options.ranks->rank() == 0 ? train_as_leader(options, progress) : train_as_follower(options);
  } catch (const std::exception& error) {  // also libtorch's
    options.ranks->refuse(error);
    throw;
  }
}

bool check_run(const TrainOptions& options, Progress& progress) {
  const RunDirectory run(options.out, options.files);
  run.refuse_parts();
  run.refuse_text();
  Config config = session_config(options, run);
  if (!options.resume || !is_there(run.root())) {
    const CheckedRun checked(std::move(config), {}, reading_of_data(options, run, true, progress));
    DirectoryLock::check_free(run.root());
    check_can_make(run.root());
    progress.message(checked.summary);
    say_idle_cores(checked.config, checked.schedule.workers, progress);
    return true;
  }
  DirectoryLock::check_free(run.root());
  ResumePoint from = find_sound_point(run, config);
  if (is_complete(from, config)) {
    progress.message(nothing_to_do(from, config, run));
    return false;
  }
  if (::access(run.root().c_str(), W_OK | X_OK) != 0) {
    throw InputError(fmt::format("{}: cannot be written to: {}", run.root().string(), std::strerror(errno)));
  }
  Training(options, run, std::move(config), std::move(from), progress).prepare();
  return true;
}

}  // namespace gyre
