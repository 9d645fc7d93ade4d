#include "gyre/train/saver.h"

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/core/timing.h"
#include "gyre/tensors/explain_torch.h"
#include "gyre/train/disk_room.h"

namespace gyre {

namespace {

// Runs cleanup whose own failure loses nothing, and must not hide an earlier error.
void ignoring_errors(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception&) {
  }
}

}  // namespace

Saver::Saver(const RunDirectory& run, const Config& config, std::optional<int64_t> saved, FileSystem& files,
             std::string attempt, bool may_copy, std::function<void(const std::string&)> say)
    : run_(run),
      settings_(config.run),
      files_(files),
      saved_(saved),
      attempt_(std::move(attempt)),
      may_copy_(may_copy),
      say_(std::move(say)),
      stall_seconds_(config.pipeline.stall_seconds) {}

std::string Saver::describe() const {
  std::vector<std::string> when;
  if (settings_.checkpoint_every > 0) {
    when.push_back(fmt::format("every {} (checkpoint_every), ", counted(settings_.checkpoint_every, "update")));
  }
  if (settings_.checkpoint_minutes > 0) {
    when.push_back(fmt::format("{:g} minute{} after the last save (checkpoint_minutes), ", settings_.checkpoint_minutes,
                               settings_.checkpoint_minutes == 1 ? "" : "s"));
  }
  const std::string kept =
      settings_.keep_checkpoints == 0 ? "all" : fmt::format("the newest {}", settings_.keep_checkpoints);
  const std::string for_ever = settings_.keep_every == 0 ? ""
                                                         : fmt::format(" and those of every {} (keep_every)",
                                                                       counted(settings_.keep_every, "update"));
  return fmt::format("saves to {} {}when interrupted and at its end; keeps {} (keep_checkpoints){}",
                     printable(run_.checkpoints().string()), join(when, ""), kept, for_ever);
}

void Saver::check_room(int64_t bytes) {
  needed_ = with_margin(bytes);
  gyre::check_room(run_, needed_, retention(), files_);
}

bool Saver::is_due() const {
  const std::chrono::duration<double, std::ratio<60>> minutes = Clock::now() - since_;
  return settings_.checkpoint_minutes > 0 && minutes.count() >= settings_.checkpoint_minutes;
}

// Runs `work`. Whatever it throws, libtorch's errors and lack of memory included, becomes a RunError that says that
// `step` was not saved; a NoRoom stays one.
void Saver::tell_unsaved(int64_t step, const std::string& remedy, const std::function<void()>& work) const {
  try {
    work();
  } catch (const std::exception& error) {
    throw_run_error(fmt::format("{}; step {} was not saved. {}{}", explain_torch(error), step, remedy, how_to_go_on()),
                    is_no_room(error));
  }
}

void Saver::begin(const CheckpointRecord& record, RunState& state, bool training_goes_on,
                  const std::function<void()>& find_fault, std::function<void()> make_durable) {
  tell_unsaved(record.step, "After that ", find_fault);
  const bool beside = training_goes_on && may_copy_;
  const auto task = std::make_shared<std::packaged_task<WrittenCheckpoint()>>(
      [this, record, &state, make_durable = std::move(make_durable)] { return write(record, state, make_durable); });
  tell_unsaved(record.step, "", [&] { state.take(/*copy=*/beside); });
  under_way_ = task->get_future();
  since_ = Clock::now();
  state_ = &state;
  step_ = record.step;
  is_sound_ = record.is_sound();
  try {
    writer_ = std::jthread([task] { (*task)(); });
  } catch (const std::exception&) {  // no thread could be started, so this one writes
    (*task)();
  }
  if (!beside) wait_for_writer();
}

// A disk that does not answer would otherwise keep everybody waiting without a word.
void Saver::wait_for_writer() const {
  if (under_way_.wait_for(std::chrono::duration<double>(stall_seconds_)) == std::future_status::ready) return;
  const std::string other = state_->awaited();
  say_(fmt::format("saving step {} takes longer than {:g} s (stall_seconds); {}", step_, stall_seconds_,
                   other.empty()
                       ? fmt::format("does the disk of {} answer? Waiting for it", run_.checkpoints().string())
                       : fmt::format("waiting for {}; does its disk answer?", other)));
  under_way_.wait();
}

WrittenCheckpoint Saver::write(const CheckpointRecord& record, RunState& state,
                               const std::function<void()>& make_durable) {
  const auto begun = Clock::now();
  tell_unsaved(record.step, "After that ", make_durable);
  try {
    write_checkpoint(record, state);
  } catch (const std::exception& error) {
    // A run that was moved meanwhile is told as such, and not as a file that is missing.
    tell_unsaved(record.step, "After that ", [this] { run_.check_in_place(); });
    const std::string room =
        fmt::format("It takes {}: make room there; then ", human_bytes(static_cast<double>(needed_)));
    tell_unsaved(record.step, is_no_room(error) ? room : "", [] { throw; });
  }
  // The checkpoint exists from here on. If another process fails now, that is reported as such and not as a failed
  // save. Nothing gives way to one that may be of no use.
  ignoring_errors([&] {
    if (record.is_sound() && remove_obsolete(run_.checkpoints(), retention(), files_)) state.remove_parts_elsewhere();
  });
  ignoring_errors([&] { state.end_save(); });
  return {record.step, seconds_since(begun)};
}

void Saver::write_checkpoint(const CheckpointRecord& record, RunState& state) {
  const bool is_short = state.is_short_of_room() || !has_room(run_, needed_, files_);
  if (is_short && record.is_sound() && make_room(run_.checkpoints(), retention(), files_)) {
    state.remove_parts_elsewhere();
  }
  CheckpointUnderConstruction checkpoint(run_.checkpoints(), record.step, files_, attempt_);
  const auto shards = state.write(checkpoint.directory(), record.step);
  try {
    state.complete(checkpoint.directory(), record.step);
    checkpoint.commit(record, shards, state.host());
  } catch (const std::exception&) {
    ignoring_errors([&] { state.remove_parts_elsewhere(); });
    ignoring_errors([&] { state.end_save(); });
    throw;
  }
}

std::optional<WrittenCheckpoint> Saver::ended(bool wait) {
  if (!under_way_.valid()) return std::nullopt;
  if (wait) wait_for_writer();
  if (under_way_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  const WrittenCheckpoint saved = under_way_.get();
  this->saved(saved.step, is_sound_);
  return saved;
}

void Saver::saved(int64_t step, bool is_sound) {
  saved_ = step;
  if (is_sound) sound_ = step;
}

std::string Saver::how_to_go_on() const {
  return fmt::format(
      "gyre train --resume {} continues from {}", shell_word(run_.root().string()),
      saved_.value_or(0) > 0 ? fmt::format("step {}, the last that was saved", *saved_) : "the beginning");
}

std::string Saver::how_to_go_back() const {
  if (!sound_) return "";
  return fmt::format(
      "; gyre train --resume {} continues from step {}, the last saved before updates were left out; to go further "
      "back, "
      "move {} away",
      shell_word(run_.root().string()), *sound_, shell_word(checkpoint_path(run_.checkpoints(), *sound_).string()));
}

}  // namespace gyre
