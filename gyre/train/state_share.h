// What one process has of a run's state, weights and optimizers' states: how large it is, a copy of it, its files in a
// checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/file_system.h"
#include "gyre/runtime/pipeline.h"

namespace gyre {

struct ShareSizes {
  int64_t file_bytes = 0;                // of its files in a checkpoint, or a little less than this
  std::vector<int64_t> optimizer_bytes;  // [stage]
};

// Which parts a process has something of.
struct ShareParts {
  bool model = false, optimizer = false;
};

class StateShare {
 public:
  // Both outlive it.
  StateShare(Pipeline& pipeline, FileSystem& files) : pipeline_(pipeline), files_(files) {}

  ShareSizes sizes() const;
  // Reads what belongs here. Errors: of CheckpointReader, and InputError for what does not fit.
  void restore(const CheckpointReader& checkpoint);
  // Begins with the weights of what belongs here, and nothing else of the checkpoint. Errors: the same.
  void begin_with(const CheckpointReader& checkpoint);
  // Between segments: holds what write() will write. Without a copy it is the live state, and nothing may run before
  // that has been written.
  ShareParts take(bool copy);
  // On any thread, into the directory where the checkpoint is made. Lets go of what was taken.
  std::vector<WrittenShard> write(const std::filesystem::path& directory, const ShardNumbers& numbers);

 private:
  Pipeline& pipeline_;
  FileSystem& files_;
  NamedTensors weights_, optimizer_;  // taken
};

}  // namespace gyre
