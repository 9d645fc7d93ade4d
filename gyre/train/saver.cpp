#include "gyre/train/saver.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

// Metrics, the manifest and what the file system keeps for itself.
int64_t with_margin(int64_t bytes) {
  return bytes + bytes / 64 + (int64_t{1} << 20);
}

// On the disk of `path`, which may be still to be made; nothing where the system does not tell.
std::optional<int64_t> free_bytes_at(std::filesystem::path path, FileSystem& files) {
  std::error_code none;
  path = std::filesystem::absolute(path);
  while (!std::filesystem::exists(path, none) && path.has_relative_path()) path = path.parent_path();
  const int64_t bytes = files.free_bytes(path);
  return bytes < 0 ? std::nullopt : std::optional(bytes);
}

}  // namespace

Saver::Saver(const RunDirectory& run, const Config& config, int64_t saved, FileSystem& files, std::string attempt,
             bool may_copy)
    : run_(run),
      settings_(config.run),
      files_(files),
      saved_(saved),
      attempt_(std::move(attempt)),
      may_copy_(may_copy) {}

std::string Saver::describe() const {
  std::vector<std::string> when;
  if (settings_.checkpoint_every > 0) {
    when.push_back(fmt::format("every {} updates (checkpoint_every), ", settings_.checkpoint_every));
  }
  if (settings_.checkpoint_minutes > 0) {
    when.push_back(
        fmt::format("{:g} minutes after the last save (checkpoint_minutes), ", settings_.checkpoint_minutes));
  }
  const std::string kept =
      settings_.keep_checkpoints == 0 ? "all" : fmt::format("the newest {}", settings_.keep_checkpoints);
  const std::string for_ever =
      settings_.keep_every == 0 ? "" : fmt::format(" and those of every {} updates (keep_every)", settings_.keep_every);
  return fmt::format("saves to {} {}when interrupted and at its end; keeps {} (keep_checkpoints){}",
                     run_.checkpoints().string(), join(when, ""), kept, for_ever);
}

void Saver::check_room(int64_t bytes) {
  needed_ = with_margin(bytes);
  const auto free = free_bytes_at(run_.checkpoints(), files_);
  const int64_t room = free.value_or(0) + room_to_make(run_.checkpoints(), retention());
  if (!free || room >= needed_) return;
  throw RunError(fmt::format("{}: a checkpoint needs {}, and {} are free there; free {} more, or choose another --out",
                             run_.checkpoints().string(), human_bytes(static_cast<double>(needed_)),
                             human_bytes(static_cast<double>(room)), human_bytes(static_cast<double>(needed_ - room))));
}

bool Saver::is_due() const {
  const std::chrono::duration<double, std::ratio<60>> minutes = Clock::now() - since_;
  return settings_.checkpoint_minutes > 0 && minutes.count() >= settings_.checkpoint_minutes;
}

RunError Saver::unsaved(const Error& error, int64_t step, const std::string& remedy) const {
  return RunError(fmt::format("{}; step {} was not saved. {}{}", error.what(), step, remedy, how_to_go_on()));
}

void Saver::begin(const CheckpointRecord& record, RunState& state, bool training_goes_on,
                  const std::function<void()>& find_fault, std::function<void()> make_durable) {
  try {
    find_fault();
  } catch (const Error& error) {
    throw unsaved(error, record.step, "After that ");
  }
  const bool beside = training_goes_on && may_copy_;
  try {
    state.take(/*copy=*/beside);
  } catch (const Error& error) {
    throw unsaved(error, record.step, "");
  }
  const auto task = std::make_shared<std::packaged_task<WrittenCheckpoint()>>(
      [this, record, &state, make_durable = std::move(make_durable)] { return write(record, state, make_durable); });
  under_way_ = task->get_future();
  since_ = Clock::now();
  if (beside) {
    writer_ = std::jthread([task] { (*task)(); });
  } else {
    (*task)();
  }
}

WrittenCheckpoint Saver::write(const CheckpointRecord& record, RunState& state,
                               const std::function<void()>& make_durable) {
  const auto begun = Clock::now();
  try {
    make_durable();
  } catch (const Error& error) {
    throw unsaved(error, record.step, "After that ");
  }
  const auto free = free_bytes_at(run_.checkpoints(), files_);
  if (free && *free < needed_) make_room(run_.checkpoints(), retention(), files_);
  try {
    CheckpointUnderConstruction checkpoint(run_.checkpoints(), record.step, files_, attempt_);
    checkpoint.commit(record, state.write(checkpoint.directory()));
  } catch (const Error& error) {
    throw unsaved(error, record.step,
                  fmt::format("It takes {}: where room is what is missing, free so much there; then ",
                              human_bytes(static_cast<double>(needed_))));
  }
  remove_obsolete(run_.checkpoints(), retention(), files_);
  return {record.step, std::chrono::duration<double>(Clock::now() - begun).count()};
}

std::optional<WrittenCheckpoint> Saver::ended(bool wait) {
  if (!under_way_.valid()) return std::nullopt;
  if (!wait && under_way_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  const WrittenCheckpoint saved = under_way_.get();
  saved_ = saved.step;
  return saved;
}

std::string Saver::how_to_go_on() const {
  return fmt::format("gyre train --resume {} continues from {}", run_.root().string(),
                     saved_ > 0 ? fmt::format("step {}, the last that was saved", saved_) : "the beginning");
}

}  // namespace gyre
