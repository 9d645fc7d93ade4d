// When and where a run saves itself, and the room on the disk that this takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/core/file_system.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/run_state.h"

namespace gyre {

class Saver {
 public:
  // `saved`: the step of the run's newest checkpoint, 0 for none. The minutes are counted from now on.
  // attempt: tells what this session writes from what another one does.
  Saver(const RunDirectory& run, const Config& config, int64_t saved, FileSystem& files, std::string attempt);

  // "saves to <where> every 10 minutes (checkpoint_minutes) and at its end; keeps the newest 3 (keep_checkpoints)"
  std::string describe() const;
  // Before anything is written: a checkpoint takes so many bytes. RunError when the disk has no room for it.
  void check_room(int64_t bytes);
  // A checkpoint of `step` is there.
  void saved(int64_t step) { saved_ = step; }
  // Whether checkpoint_minutes have passed since the last checkpoint.
  bool is_due() const;
  // `find_fault` throws what speaks against it. RunError says what failed, and how and from where the run continues.
  void save(const CheckpointRecord& record, RunState& state, const std::function<void()>& find_fault);
  // "gyre train --resume RUN continues from step 40, the last that was saved".
  std::string how_to_go_on() const;

  // Which checkpoints stay.
  Retention retention() const { return {settings_.keep_checkpoints, settings_.keep_every}; }

 private:
  using Clock = std::chrono::steady_clock;

  const RunDirectory& run_;
  RunSettings settings_;
  FileSystem& files_;
  int64_t saved_;
  std::string attempt_;
  int64_t needed_ = 0;  // bytes of a checkpoint, with a margin
  Clock::time_point since_ = Clock::now();
};

}  // namespace gyre
