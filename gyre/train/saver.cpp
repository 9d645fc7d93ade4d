#include "gyre/train/saver.h"

#include <fmt/format.h>

#include <optional>
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

Saver::Saver(const RunDirectory& run, const Config& config, int64_t saved, FileSystem& files, std::string attempt)
    : run_(run), settings_(config.run), files_(files), saved_(saved), attempt_(std::move(attempt)) {}

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
  return fmt::format("saves to {} {}when interrupted and at its end; keeps {} (keep_checkpoints)",
                     run_.checkpoints().string(), join(when, ""), kept);
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

void Saver::save(const CheckpointRecord& record, RunState& state, const std::function<void()>& find_fault) {
  const auto unsaved = [&](const Error& error, const std::string& remedy) {
    return RunError(fmt::format("{}; step {} was not saved. {} {}", error.what(), record.step, remedy, how_to_go_on()));
  };
  try {
    find_fault();
  } catch (const Error& error) {
    throw unsaved(error, "After that");
  }
  const auto free = free_bytes_at(run_.checkpoints(), files_);
  if (free && *free < needed_) make_room(run_.checkpoints(), retention(), files_);
  try {
    state.take(/*copy=*/false);
    CheckpointUnderConstruction checkpoint(run_.checkpoints(), record.step, files_, attempt_);
    checkpoint.commit(record, state.write(checkpoint.directory()));
  } catch (const Error& error) {
    throw unsaved(error, fmt::format("It takes {}: where room is what is missing, free so much there; then",
                                     human_bytes(static_cast<double>(needed_))));
  }
  remove_obsolete(run_.checkpoints(), retention(), files_);
  saved_ = record.step;
  since_ = Clock::now();
}

std::string Saver::how_to_go_on() const {
  return fmt::format("gyre train --resume {} continues from {}", run_.root().string(),
                     saved_ > 0 ? fmt::format("step {}, the last that was saved", saved_) : "the beginning");
}

}  // namespace gyre
