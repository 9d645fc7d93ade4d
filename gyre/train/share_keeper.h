// The counterpart of RunState on the ranks other than 0: answers what rank 0 asks about this process's share, and
// writes it. For each directory that is not rank 0's, one process is its keeper.
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "gyre/runtime/ranks/text_line.h"
#include "gyre/train/checked_run.h"
#include "gyre/train/part_directory.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/share_messages.h"
#include "gyre/train/state_share.h"

namespace gyre {

class ShareKeeper {
 public:
  // All arguments must outlive this object. The processes have met. resume: the run existed before.
  // A checkpoint that is restored says where in its data `checked` goes on.
  ShareKeeper(const RunDirectory& run, CheckedRun& checked, bool resume, Pipeline& pipeline, FileSystem& files,
              Ranks& ranks);
  std::string answer(const std::string& question);

 private:
  ShareAnswer answer(const ShareQuestion& question);
  ShareAnswer look(const ShareQuestion& question);
  void restore(const CheckpointReader& checkpoint);
  ShareAnswer take(bool copy);
  void write(const std::stop_token& stop);
  void obey_orders(const std::stop_token& stop);
  std::vector<WrittenShard> obey(const WriteOrder& order);
  std::vector<WrittenShard> write_shards(const WriteOrder& order);

  const RunDirectory& run_;
  CheckedRun& checked_;
  bool resume_;
  int rank_;
  StateShare share_;
  FileSystem& files_;
  Ranks& ranks_;
  TextLine line_;
  bool sees_rank_0s_ = true;            // this process's run directory is rank 0's
  std::optional<PartDirectory> parts_;  // if this process is a keeper
  std::jthread writer_;                 // writes what was taken; last, so that it is joined first
};

}  // namespace gyre
