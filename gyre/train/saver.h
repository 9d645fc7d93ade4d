// When and where a run saves itself, the room on the disk that this takes, and the thread that writes in the
// background.
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
  // `saved`: the step of the run's newest checkpoint. checkpoint_minutes count from now on.
  // attempt: a part of names that distinguishes this session's files from another's. may_copy: there is memory for a
  // copy. say: tells the user of a save that training has waited for longer than stall_seconds, once for each.
  Saver(const RunDirectory& run, const Config& config, std::optional<int64_t> saved, FileSystem& files,
        std::string attempt, bool may_copy, std::function<void(const std::string&)> say);

  // "saves to <where> every 10 minutes (checkpoint_minutes) and at its end; keeps the newest 3 (keep_checkpoints)"
  std::string describe() const;
  // To be called before anything is written: throws NoRoom if the disk has none for a checkpoint of `bytes` bytes.
  void check_room(int64_t bytes);
  // Notes that there is a checkpoint of `step`.
  void saved(int64_t step, bool is_sound);
  // The step of the newest checkpoint.
  std::optional<int64_t> last() const { return saved_; }
  // Whether checkpoint_minutes have passed since the last save began.
  bool is_due() const;
  // Starts a save; the one before it must have ended. Throws RunError if `find_fault` throws or the state cannot be
  // taken. A thread of its own writes. If training goes on and memory has room for a copy, it writes the copy;
  // otherwise this call waits for it. `make_durable` is called before the writing, to sync what the checkpoint relies
  // on. ended() reports the outcome. `state` must outlive this object.
  void begin(const CheckpointRecord& record, RunState& state, bool training_goes_on,
             const std::function<void()>& find_fault, std::function<void()> make_durable);
  // Returns the save that was started, once, when it has ended; empty if it has not, unless `wait` is set. Throws
  // RunError if it failed, saying what did, and how and from where the run continues.
  std::optional<WrittenCheckpoint> ended(bool wait);
  // Whether a save was started that ended() has not reported yet.
  bool is_saving() const { return under_way_.valid(); }
  // "gyre train --resume RUN continues from step 40, the last that was saved".
  std::string how_to_go_on() const;
  // The same after a divergence, from the last checkpoint that was saved while no update was left out.
  std::string how_to_go_back() const;

  // Which checkpoints stay.
  Retention retention() const { return {settings_.keep_checkpoints, settings_.keep_every}; }

 private:
  using Clock = std::chrono::steady_clock;

  void wait_for_writer() const;
  void tell_unsaved(int64_t step, const std::string& remedy, const std::function<void()>& work) const;
  void write_checkpoint(const CheckpointRecord& record, RunState& state);
  WrittenCheckpoint write(const CheckpointRecord& record, RunState& state, const std::function<void()>& make_durable);

  const RunDirectory& run_;
  RunSettings settings_;
  FileSystem& files_;
  const RunState* state_ = nullptr;       // of the save under way
  std::optional<int64_t> saved_, sound_;  // the newest, and the newest that is sound
  std::string attempt_;
  bool may_copy_;
  std::function<void(const std::string&)> say_;
  double stall_seconds_;
  int64_t step_ = 0;  // of the save under way
  bool is_sound_ = true;
  int64_t needed_ = 0;  // bytes of a checkpoint, with a margin
  Clock::time_point since_ = Clock::now();
  std::future<WrittenCheckpoint> under_way_;
  std::jthread writer_;  // last, so that it is joined first
};

}  // namespace gyre
