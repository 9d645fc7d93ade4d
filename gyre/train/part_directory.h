// The run directory of a host that does not see rank 0's: it has the parts of checkpoints that processes there write.
// Rank 0's has the manifests, and says which parts belong to a checkpoint. The first process that sees it keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/core/files.h"
#include "gyre/train/disk_room.h"
#include "gyre/train/run_directory.h"

namespace gyre {

class PartDirectory {
 public:
  // Holds it from now on, and leaves `token` for the others that see it. InputError, and nothing is changed, where a
  // run's own directory or another run's parts lie there, or, unless a run is resumed, anything of a run.
  // `mark`: what it is to have. All references outlive it.
  PartDirectory(const RunDirectory& run, const Config& config, PartsMark mark, bool resume, const std::string& token,
                FileSystem& files);

  // RunError where files of so many bytes have no room.
  void check_room(int64_t bytes);
  // The disk has less than that by now.
  bool is_short_of_room() const { return !has_room(run_, needed_, files_); }
  // The run begins: the directory is made, the parts of damaged checkpoints are set aside, and those of checkpoints
  // that are not among `steps` removed.
  void begin(const std::vector<int64_t>& damaged, const std::vector<int64_t>& steps);
  // Of parts under a temporary name.
  void complete(const std::string& temporary, int64_t step) {
    complete_part(run_.checkpoints(), temporary, step, files_);
  }
  void drop(const std::string& temporary) { remove_tree(run_.checkpoints() / temporary, files_); }
  void keep_only(const std::vector<int64_t>& steps) { gyre::keep_only(run_.checkpoints(), steps, files_); }

 private:
  const RunDirectory& run_;
  const Config& config_;
  PartsMark mark_;
  FileSystem& files_;
  int64_t needed_ = 0;
  DirectoryLock lock_;
};

}  // namespace gyre
