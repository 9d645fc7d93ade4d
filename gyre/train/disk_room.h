// Whether a checkpoint can be written into a run's directory, and its disk has room for it.
#pragma once

#include <cstdint>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/file_system.h"
#include "gyre/train/run_directory.h"

namespace gyre {

// The room that a checkpoint with files of `bytes` bytes needs: more, for metrics, the manifest, and what the file
// system uses itself.
int64_t with_margin(int64_t bytes);
// Whether `needed` bytes are free; true if the system does not say.
bool has_room(const RunDirectory& run, int64_t needed, FileSystem& files);
// Throws InputError if the run's directory for checkpoints cannot be written to, and NoRoom if `needed` bytes would not
// be free even after removing the checkpoints that need not stay.
void check_room(const RunDirectory& run, int64_t needed, Retention retention, FileSystem& files);

}  // namespace gyre
