// The other ranks' side of RunState: answers what rank 0 asks of this process's share, and writes it. One process of
// each host that does not see rank 0's run directory keeps that host's own.
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "gyre/config/config.h"
#include "gyre/runtime/ranks/text_line.h"
#include "gyre/train/part_directory.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/share_messages.h"
#include "gyre/train/state_share.h"

namespace gyre {

class ShareKeeper {
 public:
  // All outlive it. The processes have met. resume: the run was there before.
  ShareKeeper(const RunDirectory& run, const Config& config, bool resume, Pipeline& pipeline, FileSystem& files,
              Ranks& ranks);
  std::string answer(const std::string& question);

 private:
  ShareAnswer answer(const ShareQuestion& question);
  ShareAnswer look(const ShareQuestion& question);
  ShareAnswer restore(const ShareQuestion& question);
  ShareAnswer take(bool copy);
  void write(const std::stop_token& stop);
  std::vector<WrittenShard> obey(const WriteOrder& order);
  std::vector<WrittenShard> write_shards(const WriteOrder& order);

  const RunDirectory& run_;
  const Config& config_;
  bool resume_;
  int rank_;
  StateShare share_;
  FileSystem& files_;
  TextLine line_;
  bool sees_rank_0s_ = true;  // the run directory that is here is rank 0's
  std::optional<PartDirectory> parts_;
  std::jthread writer_;  // of what was taken; last: it ends first
};

}  // namespace gyre
