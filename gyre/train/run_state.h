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

  // Finds out who sees `token` in the run's directory. InputError when a process does not, and all should: it is
  // another directory there. Else the first process that sees a directory keeps it for those that do.
  void find_directories(const std::string& token, bool shared);
  // Whether some files of a checkpoint will lie elsewhere than in rank 0's directory.
  bool has_parts() const { return places_.size() > 1; }
  // "rank 0 /runs/a on host-a, rank 4 /runs/a on host-b".
  std::string describe_directories() const;
  // Of all processes together; files, of those that see rank 0's directory.
  ShareSizes sizes();
  // After sizes(): RunError where another directory has no room for its part of a checkpoint.
  void check_room();
  // InputError: of CheckpointReader, and for what does not fit; by the name of the process if it is another one.
  void restore(const CheckpointReader& checkpoint);
  // The same with the weights of a checkpoint of another run, the one that [run] init_from names.
  void begin_with(const CheckpointReader& checkpoint);
  // The run begins, once its own directory is as it is to be: the others become so. `damaged`: checkpoints that were
  // set aside.
  void begin(const std::vector<int64_t>& damaged);
  // Between segments; see StateShare.
  void take(bool copy);
  // Whether another directory has no room for what was taken.
  bool is_short_of_room() const { return short_of_room_; }

  // On any thread, of what was taken. First: all write it into `directory`, which lies beside the run's checkpoints, or
  // beside those of their host. RunError names the process that could not, when all have ended; then nothing follows.
  std::vector<WrittenShard> write(const std::filesystem::path& directory, int64_t step);
  // Then the other directories give the parts the checkpoint's name, before rank 0's manifest makes them one. RunError.
  void complete(const std::filesystem::path& directory, int64_t step);
  // At any time before the end: other directories remove parts of what is no checkpoint here. No failure is a loss.
  void follow_removal();
  // Last, if anything was written.
  void end_save();
  // Where the run's own directory is, for the manifest; empty where there is no other.
  std::string host() const { return has_parts() ? places_[0].host : ""; }

 private:
  // [rank]; what rank 0 would answer is empty. `meanwhile`, on this process's share, is done while the others think.
  std::vector<ShareAnswer> ask(const ShareQuestion& question, const std::function<void()>& meanwhile = {});
  ShardNumbers numbers_of(size_t rank) const;
  std::string whose(size_t rank) const;
  void read(ShareQuestion question, const CheckpointReader& checkpoint, const std::function<void()>& own);
  void raise(const std::vector<ShareAnswer>& answers) const;
  // To the keepers of other directories; the first error, by the name of the process.
  std::string order(const WriteOrder& order);

  // A directory that some processes see.
  struct Directory {
    size_t keeper = 0;  // rank
    std::string host, root;
    std::string token;  // what the keeper has left there
  };

  const RunDirectory& run_;
  StateShare share_;
  FileSystem& files_;
  Ranks* ranks_;
  ProcessesExecutor* others_;
  std::vector<std::unique_ptr<TextLine>> writers_;  // [rank]
  std::vector<ShareParts> parts_;                   // [rank]: of what was taken
  std::vector<Directory> places_;                   // rank 0's first
  std::vector<size_t> seen_;                        // [rank]: which of them
  std::vector<int64_t> bytes_;                      // [rank]: of the files that a keeper's directory is to take
  PartsMark mark_;
  bool short_of_room_ = false;
};

}  // namespace gyre
