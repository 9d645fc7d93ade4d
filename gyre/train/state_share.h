// One process's share of a run's state (weights and optimizers' states): its size, a copy of it, its files in a
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
  int64_t file_bytes = 0;                // an upper bound of the files in a checkpoint
  std::vector<int64_t> optimizer_bytes;  // [stage]
};

// The parts that a process has tensors of.
struct ShareParts {
  bool model = false, optimizer = false;
};

class StateShare {
 public:
  // Both must outlive this object.
  StateShare(Pipeline& pipeline, FileSystem& files) : pipeline_(pipeline), files_(files) {}

  ShareSizes sizes() const;
  // Restores this process's share. Throws what CheckpointReader throws, and InputError for a state that does not fit.
  void restore(const CheckpointReader& checkpoint);
  // Loads the weights of this process's share, and nothing else of the checkpoint. Throws the same.
  void begin_with(const CheckpointReader& checkpoint);
  // To be called between segments: holds what write() will write. Without `copy` that is the live state, and nothing
  // may run before it has been written.
  ShareParts take(bool copy);
  // Writes what was taken into the directory in which the checkpoint is built, and releases it. On any thread.
  std::vector<WrittenShard> write(const std::filesystem::path& directory, const ShardNumbers& numbers);

 private:
  Pipeline& pipeline_;
  FileSystem& files_;
  NamedTensors weights_, optimizer_;  // what was taken
};

}  // namespace gyre
