// The state of a run, weights and optimizers' states, wherever it is, as rank 0 or the only process sees it: every
// process has its share, reads it from a checkpoint and writes it into one. Nothing of it comes here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gyre/runtime/processes_executor.h"
#include "gyre/runtime/ranks/text_line.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/share_messages.h"
#include "gyre/train/state_share.h"

namespace gyre {

class RunState {
 public:
  // All outlive it. `others`: the executor of rank 0; null in a run of one process.
  RunState(const RunDirectory& run, Pipeline& pipeline, FileSystem& files, Ranks* ranks = nullptr,
           ProcessesExecutor* others = nullptr);

  // InputError when a process does not see `token` in the run's directory: it is another directory there, and what it
  // writes would not be part of the run.
  void check_directory(const std::string& token);
  // Of all processes together.
  ShareSizes sizes();
  // InputError: of CheckpointReader, and for what does not fit; by the name of the process if it is another one.
  void restore(const CheckpointReader& checkpoint);
  // Between segments; see StateShare.
  void take(bool copy);
  // On any thread: all write what they have taken into `directory`, which lies beside the run's checkpoints. RunError
  // names the process that could not, when all have ended.
  std::vector<WrittenShard> write(const std::filesystem::path& directory);

 private:
  // [rank]; what rank 0 would answer is empty. `meanwhile`, on this process's share, is done while the others think.
  std::vector<ShareAnswer> ask(const ShareQuestion& question, const std::function<void()>& meanwhile = {});
  ShardNumbers numbers_of(size_t rank) const;
  std::string whose(size_t rank) const;

  const RunDirectory& run_;
  StateShare share_;
  Ranks* ranks_;
  ProcessesExecutor* others_;
  std::vector<std::unique_ptr<TextLine>> writers_;  // [rank]
  std::vector<ShareParts> parts_;                   // [rank]: of what was taken
};

}  // namespace gyre
