#include "gyre/train/bookkeeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gyre/build/model_identity.h"
#include "gyre/config/config_changes.h"
#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/core/timing.h"
#include "gyre/report/trace.h"
#include "gyre/runtime/settings/executor_kind.h"

namespace gyre {
namespace {

constexpr int64_t kMaxTracedActions = 1'000'000;

}  // namespace

bool Bookkeeper::works_side_by_side() const {
  return executor_kinds().at(config_.pipeline.executor).side_by_side;
}

Bookkeeper::Bookkeeper(const TrainOptions& options, const std::stop_token& stop, const RunDirectory& run,
                       const CheckedRun& checked, const ResumePoint& from, Progress& progress,
                       const std::string& attempt)
    : options_(options),
      run_(run),
      checked_(checked),
      from_(from),
      progress_(progress),
      announcer_(stop, from.step(), progress),
      saver_(run, checked.config, from.checkpoint ? std::optional(from.step()) : std::nullopt, options.files, attempt,
             checked.may_copy, [&progress](const std::string& line) { progress.message(line); }) {}

void Bookkeeper::take_up(int stages) {
  if (!from_.checkpoint) return;
  const CheckpointRecord& record = from_.checkpoint->record();
  saver_.saved(record.step, record.is_sound());
  announcer_.saved(record.step);
  drains_ = record.drains;
  if (record.delay.size() == static_cast<size_t>(stages)) delay_ = record.delay;
  skipped_ = record.skipped;
  result_.step = record.step;
  result_.tokens = record.tokens;
  result_.loss = from_.record.loss.value_or(std::nan(""));
  result_.val_loss = from_.record.val_loss;
  result_.ema_val_loss = from_.record.ema_val_loss;
}

void Bookkeeper::say_where_it_goes_on(const Pipeline& pipeline) const {
  const std::string root = printable(run_.root().string());
  for (const DamagedStep& damaged : from_.damaged) {
    progress_.message(
        fmt::format("{}; step {} is set aside as damaged, the one before it is used", damaged.fault, damaged.step));
  }
  if (!is_there(run_.metrics())) {
    progress_.message(fmt::format("{}: nothing to resume, starting from step 0", root));
    return;
  }
  const int64_t done = result_.step;
  std::string text = done > 0 ? fmt::format("resuming {} at step {}", root, done)
                              : fmt::format("{}: no checkpoint was written, starting from step 0", root);
  const int64_t newest = from_.record.newest_step;
  if (newest > done) text += fmt::format("; steps {} to {} were not saved and are made again", done + 1, newest);
  if (newest == 0 && done > 0) text += fmt::format("; steps 1 to {} stay without a record", done);
  progress_.message(text);
  if (!from_.changes.empty()) progress_.message("changed: " + describe(from_.changes));
  say_whether_rate_rises(pipeline.options().learning_rate);
}

// The learning rate's schedule ends with the run. With more updates it goes back to where a longer run would be.
void Bookkeeper::say_whether_rate_rises(const std::function<double(int64_t)>& learning_rate) const {
  const bool is_extended = std::ranges::any_of(
      from_.changes, [](const ConfigChange& change) { return change.table == "run" && change.key == "updates"; });
  if (!is_extended || !from_.checkpoint || !from_.record.lr) return;
  const double last = *from_.record.lr, next = learning_rate(from_.step() + 1);
  const bool is_warmup = learning_rate(from_.step()) == last;  // or another part that more updates do not change
  if (next <= last || is_warmup) return;
  progress_.message(fmt::format("lr goes from {:.3g} to {:.3g}: its schedule now has {}", last, next,
                                counted(config_.run.updates, "update")));
}

void Bookkeeper::begin(const Pipeline& pipeline, std::vector<int64_t> optimizer_bytes, const RankMap* map) {
  pipeline_ = &pipeline;
  optimizer_bytes_ = std::move(optimizer_bytes);
  map_ = map;
  const int64_t done = result_.step;
  for (const DamagedStep& damaged : from_.damaged) set_aside(run_.checkpoints(), damaged.step, options_.files);
  const double written = last_written(run_.metrics());
  if (options_.resume && is_there(run_.metrics())) {
    continue_metrics(run_.metrics(), done, to_json(from_.changes), from_.record.kept, options_.files);
  }
  run_.create(config_, &*checked_.dataset);
  // Finishes the removals of a save that was killed, in case no other save follows.
  if (options_.resume && (!from_.checkpoint || from_.checkpoint->record().is_sound())) {
    remove_obsolete(run_.checkpoints(), saver_.retention(), options_.files);
  }
  metrics_ = std::make_unique<MetricsWriter>(run_.metrics(), options_.files);
  exports_ = std::make_unique<MetricsExports>(run_, config_, written, progress_, options_.files);
  metrics_->tell(*exports_);
  progress_.message(saver_.describe());
  progress_.start(config_.run.updates, done);
  live_.emplace(run_, config_, started_, done, result_.tokens, progress_, options_.files);
}

SegmentObserver& Bookkeeper::listen_to(const Segment& segment) {
  asks_to_drain_ = false;
  rate_.go_on(Clock::now());
  live_->enter("training");
  return listener_.emplace(
      segment.schedule->stages, segment, [this](const StepRecord& step) { record(step); }, progress_, *live_,
      announcer_, [this](const Error& why) { give_up(why); }, [this](int64_t skipped) { skipped_ += skipped; });
}

SegmentObserver& Bookkeeper::listen_to_evaluation() {
  live_->enter("evaluating");
  return evaluation_.emplace(progress_, *live_, [this](const Error& why) { give_up(why); });
}

int64_t Bookkeeper::traced_microbatches(int64_t microbatches) {
  if (options_.trace.empty()) return 0;
  const Schedule& schedule = pipeline_->schedule();
  int64_t actions = 0;  // of `shift` microbatches
  for (const Program& program : schedule.programs) actions += std::ssize(program.period);
  const int64_t room = kMaxTracedActions - measurements_.traced_actions();
  const int64_t traced = trace_is_cut_ ? 0 : std::clamp<int64_t>(room * schedule.shift / actions, 0, microbatches);
  trace_is_cut_ = traced < microbatches;
  return traced;
}

void Bookkeeper::record(const StepRecord& step) {
  const int64_t step_tokens = pipeline_->schedule().window * checked_.train_batches->tokens_per_batch();
  MetricsStep line;
  line.step = step.step;
  line.loss = step.loss;
  line.lr = pipeline_->options().learning_rate(step.step);
  line.grad_norm = step.grad_norm;
  line.tokens = result_.tokens + step_tokens;
  line.tokens_per_second = rate_.update(step_tokens, Clock::now());
  line.seconds = seconds_since(started_);
  metrics_->step(line);
  live_->step(line);
  progress_.step(step.step, step.loss, line.tokens_per_second);
  result_.step = step.step;
  result_.loss = step.loss;
  result_.tokens = line.tokens;
  note_finished_save();
  // Checked only when an update ends, so that every segment makes progress.
  if (save_is_due()) asks_to_drain_ = true;
}

void Bookkeeper::check_last_loss() const {
  if (std::isfinite(result_.loss)) return;
  throw Divergence(fmt::format(
      "the loss of the last update, {}, is not finite; lower [optimizer] lr, or lengthen its warmup", result_.step));
}

bool Bookkeeper::save_is_due() {
  if (options_.take_save_request && options_.take_save_request()) save_asked_ = true;
  return save_asked_ || saver_.is_due();
}

void Bookkeeper::add(const Segment& segment, const SegmentReport& report) {
  rate_.stop(Clock::now());
  measurements_.add(segment, report, train_seconds_);
  train_seconds_ += report.seconds;
  train_microbatches_ += report.microbatches;
  for (const int64_t skipped : report.skipped) skipped_ += skipped;
  MetricsSegment line;
  line.step = result_.step;
  line.seconds = report.seconds;
  for (const WorkerReport& worker : report.workers) {
    busy_seconds_ += worker.busy_seconds;
    if (works_side_by_side()) line.bubbles.push_back(1 - worker.busy_seconds / report.seconds);
  }
  add_memory(report, line);
  worker_seconds_ += report.seconds * static_cast<double>(report.workers.size());
  delay_.resize(report.delay.size());
  for (size_t stage = 0; stage < report.delay.size(); ++stage) {
    double sum = 0, gradients = 0;
    for (const auto& [delay, count] : report.delay[stage]) {
      delay_[stage][delay] += count;
      sum += static_cast<double>(delay * count);
      gradients += static_cast<double>(count);
    }
    line.delays.push_back(sum / gradients);
  }
  if (report.microbatches > 0) metrics_->segment(line);
  raise_failed_save();
}

// Every worker reports the peaks of its process when it ends. Peaks only grow, so the largest report covers all of the
// process's workers.
void Bookkeeper::add_memory(const SegmentReport& report, MetricsSegment& line) const {
  const auto keep_max = [](std::vector<int64_t>& peaks, size_t process, int64_t bytes) {
    if (bytes == 0) return;
    peaks.resize(std::max(peaks.size(), process + 1));
    peaks[process] = std::max(peaks[process], bytes);
  };
  for (size_t worker = 0; worker < report.workers.size(); ++worker) {
    const auto process = static_cast<size_t>(map_ == nullptr ? 0 : map_->rank_of(static_cast<int>(worker)));
    const ProcessMemory& memory = report.workers[worker].memory;
    keep_max(line.peak_tensor_bytes, process, memory.peak_tensors);
    keep_max(line.peak_resident_bytes, process, memory.peak_resident);
  }
}

void Bookkeeper::drained(int64_t step, const std::string& reason, bool planned) {
  if (!planned) drains_.push_back(step);
  metrics_->drain(step, reason);
}

void Bookkeeper::evaluated(int64_t step, double loss, std::optional<double> ema_loss) {
  metrics_->eval(step, loss, ema_loss);
  live_->evaluated(loss);
  const std::string ema = ema_loss ? fmt::format(", of the averaged weights {:.4f}", *ema_loss) : "";
  progress_.message(fmt::format("step {}: validation loss {:.4f}{}", step, loss, ema));
  result_.val_loss = loss;
  result_.ema_val_loss = ema_loss;
}

void Bookkeeper::save(CheckpointRecord record, RunState& state, bool training_goes_on) {
  wait_for_save();
  // The state is what was saved then. Saving it again would not be safe, either: parts in several directories cannot be
  // replaced by others of the same step at one moment.
  if (record.step == saver_.last()) {
    save_asked_ = false;
    return;
  }
  const auto begun = Clock::now();
  live_->enter("saving");
  record.seed = static_cast<uint64_t>(config_.run.seed);
  record.model = model_identity(config_);
  record.data = checked_.dataset->identity();
  record.mixture = checked_.mixture;
  record.drains = drains_;
  record.delay = delay_;
  record.skipped = skipped_;
  const auto find_fault = [this] {
    run_.check_in_place();
    checked_.dataset->check_unchanged();
    metrics_->check();
  };
  // Metrics are made durable first: a checkpoint must not have updates whose metrics can still be lost.
  saver_.begin(record, state, training_goes_on, find_fault, [this] { metrics_->sync(); });
  save_asked_ = false;
  goes_on_beside_save_ = training_goes_on;
  save_wait_ = seconds_since(begun);
  if (const auto saved = saver_.ended(/*wait=*/false)) note(*saved);
}

void Bookkeeper::note(const WrittenCheckpoint& saved) {
  result_.save_wait_seconds += save_wait_;
  result_.save_write_seconds += saved.write_seconds;
  if (goes_on_beside_save_) measurements_.add_save_wait(save_wait_);  // the last save of a session delays no training
  announcer_.saved(saved.step);
  metrics_->checkpoint(saved.step, save_wait_, saved.write_seconds);
}

// Notes a background save that has ended. If it has failed, the run ends once the pipeline is empty.
void Bookkeeper::note_finished_save() {
  std::optional<WrittenCheckpoint> saved;
  try {
    saved = saver_.ended(/*wait=*/false);
  } catch (const RunError&) {
    failed_save_ = std::current_exception();
  }
  if (saved) note(*saved);
  if (failed_save_) asks_to_drain_ = true;
}

void Bookkeeper::wait_for_save() {
  raise_failed_save();
  if (saver_.is_saving()) live_->enter("saving");
  const auto begun = Clock::now();
  const auto saved = saver_.ended(/*wait=*/true);
  save_wait_ += seconds_since(begun);
  if (saved) note(*saved);
}

void Bookkeeper::settle_save() {
  try {
    wait_for_save();
  } catch (const std::exception&) {
  }
}

void Bookkeeper::raise_failed_save() const {
  if (failed_save_) std::rethrow_exception(failed_save_);
}

// A worker hangs inside an action, so nothing that it may touch can be destroyed, and the process has to end.
void Bookkeeper::give_up(const Error& why) {
  if (!options_.abandon) return;
  try {
    record_end("failed");
  } catch (const std::exception&) {  // the reason for giving up is what counts
  }
  options_.abandon(
      {fmt::format("{}; the updates since step {} are lost, {}", why.what(), announcer_.saved(), how_to_go_on()),
       why.exit_code()});
}

TrainResult Bookkeeper::end(const std::string& status) {
  result_.finished = status == "finished";
  record_end(status);
  if (skipped_ > 0) {
    progress_.message(
        fmt::format("updates of stages that were left out, since gradients were not finite: {}", skipped_));
  }
  progress_.finish();
  try {
    write_measurements();
  } catch (const RunError&) {
    result_.fault_afterwards = std::current_exception();
  }
  return result_;
}

void Bookkeeper::end_early(int exit_code) {
  if (!metrics_) return;  // it had not begun
  settle_save();
  try {
    end(exit_code == kDiverged ? "diverged" : "failed");
  } catch (const std::exception&) {
  }
}

void Bookkeeper::record_end(const std::string& status) {
  for (size_t stage = 0; stage < delay_.size(); ++stage) metrics_->delay(static_cast<int>(stage), delay_[stage]);
  result_.seconds = seconds_since(started_);
  result_.parameters = pipeline_->parameter_count();
  if (train_seconds_ > 0) {
    result_.tokens_per_second =
        static_cast<double>(train_microbatches_ * checked_.train_batches->tokens_per_batch()) / train_seconds_;
    if (works_side_by_side()) {
      result_.bubble_fraction = 1 - busy_seconds_ / worker_seconds_;
    }
  }
  result_.status = status;
  result_.skipped_updates = skipped_;
  live_->end(status);
  metrics_->end(result_);
}

void Bookkeeper::write_measurements() {
  if (measurements_.empty()) return;
  write_file_atomic(
      run_.costs(),
      to_json(measurements_.cost_model(*pipeline_, optimizer_bytes_, checked_.train_batches->tokens_per_batch())),
      options_.files);
  if (options_.trace.empty()) return;
  write_trace(options_.trace, pipeline_->schedule(), measurements_.trace(), options_.files);
  if (trace_is_cut_) {
    progress_.message(fmt::format("{}: ends after {} actions; trace a shorter run for the rest",
                                  options_.trace.string(), measurements_.traced_actions()));
  }
}

}  // namespace gyre
