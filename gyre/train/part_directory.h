// The run directory of a host that does not see rank 0's. It has the parts of checkpoints that processes there write;
// rank 0's has the manifests and says which parts belong to a checkpoint. The first process that sees the directory is
// its keeper.
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
  // Locks the directory and leaves `token` for the other processes that see it. Throws InputError, and changes nothing,
  // if it is a run's own directory or has another run's parts, or, unless a run is resumed, anything of a run. `mark`:
  // what begin() writes there. All references must outlive this object.
  PartDirectory(const RunDirectory& run, const Config& config, PartsMark mark, bool resume, const std::string& token,
                FileSystem& files);

  // Throws NoRoom if there is none for files of `bytes` bytes.
  void check_room(int64_t bytes);
  // Whether the disk now has less room than check_room() asked for.
  bool is_short_of_room() const { return !has_room(run_, needed_, files_); }
  // Called when the run begins: makes the directory, sets aside the parts of `damaged` checkpoints, and removes those
  // of checkpoints that are not among `steps`.
  void begin(const std::vector<int64_t>& damaged, const std::vector<int64_t>& steps);
  // For the parts under a temporary name: complete() gives them the checkpoint's name, drop() removes them.
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
