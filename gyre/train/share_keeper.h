// The other ranks' side of RunState: answers what rank 0 asks of this process's share, and writes it.
#pragma once

#include <string>
#include <thread>

#include "gyre/runtime/ranks/text_line.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/share_messages.h"
#include "gyre/train/state_share.h"

namespace gyre {

class ShareKeeper {
 public:
  // All outlive it. The processes have met.
  ShareKeeper(const RunDirectory& run, Pipeline& pipeline, FileSystem& files, Ranks& ranks);
  std::string answer(const std::string& question);

 private:
  ShareAnswer look(const std::string& token) const;
  ShareAnswer restore(int64_t step);
  ShareAnswer take(bool copy);
  void write(const std::stop_token& stop);

  const RunDirectory& run_;
  StateShare share_;
  FileSystem& files_;
  TextLine line_;
  std::jthread writer_;  // of what was taken; last: it ends first
};

}  // namespace gyre
