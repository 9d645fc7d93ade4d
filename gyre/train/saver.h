// When and where a run saves itself, the room on the disk that this takes, and the thread that writes beside training.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/file_system.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/run_state.h"

namespace gyre {

// A checkpoint that was written.
struct WrittenCheckpoint {
  int64_t step = 0;
  double write_seconds = 0;
};

class Saver {
 public:
  // `saved`: the step of the run's newest checkpoint. The minutes are counted from now on.
  // attempt: tells what this session writes from what another one does. may_copy: there is memory for a copy.
  Saver(const RunDirectory& run, const Config& config, std::optional<int64_t> saved, FileSystem& files,
        std::string attempt, bool may_copy);

  // "saves to <where> every 10 minutes (checkpoint_minutes) and at its end; keeps the newest 3 (keep_checkpoints)"
  std::string describe() const;
  // Before anything is written: a checkpoint takes so many bytes. RunError when the disk has no room for it.
  void check_room(int64_t bytes);
  // A checkpoint of `step` is there.
  void saved(int64_t step) { saved_ = step; }
  // The step of the newest checkpoint.
  std::optional<int64_t> last() const { return saved_; }
  // Whether checkpoint_minutes have passed since the last checkpoint.
  bool is_due() const;
  // Begins a save when the one before it has ended. `find_fault` throws what speaks against it: RunError then. Where
  // training goes on and there is room for a copy, the copy is written on a thread; else all is written now.
  // `make_durable` comes first there: what the checkpoint presupposes. How it went says ended(). `state` outlives it.
  void begin(const CheckpointRecord& record, RunState& state, bool training_goes_on,
             const std::function<void()>& find_fault, std::function<void()> make_durable);
  // The save that was begun, once, when it has ended; waits for that if asked to. RunError where it failed: it says
  // what did, and how and from where the run continues.
  std::optional<WrittenCheckpoint> ended(bool wait);
  // Whether one was begun of which ended() has not told.
  bool is_saving() const { return under_way_.valid(); }
  // "gyre train --resume RUN continues from step 40, the last that was saved".
  std::string how_to_go_on() const;

  // Which checkpoints stay.
  Retention retention() const { return {settings_.keep_checkpoints, settings_.keep_every}; }

 private:
  using Clock = std::chrono::steady_clock;

  void tell_unsaved(int64_t step, const std::string& remedy, const std::function<void()>& work) const;
  void write_checkpoint(const CheckpointRecord& record, RunState& state);
  WrittenCheckpoint write(const CheckpointRecord& record, RunState& state, const std::function<void()>& make_durable);

  const RunDirectory& run_;
  RunSettings settings_;
  FileSystem& files_;
  std::optional<int64_t> saved_;
  std::string attempt_;
  bool may_copy_;
  int64_t needed_ = 0;  // bytes of a checkpoint, with a margin
  Clock::time_point since_ = Clock::now();
  std::future<WrittenCheckpoint> under_way_;
  std::jthread writer_;  // last: it ends first
};

}  // namespace gyre
