// Whether the disk of a run's directory has room for a checkpoint.
#pragma once

#include <cstdint>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/file_system.h"
#include "gyre/train/run_directory.h"

namespace gyre {

// What a checkpoint takes whose files have so many bytes: with metrics, the manifest, and what the file system keeps
// for itself.
int64_t with_margin(int64_t bytes);
// Whether that much is free; also where the system does not tell.
bool has_room(const RunDirectory& run, int64_t needed, FileSystem& files);
// RunError where that much is not free, also when what need not be kept is gone.
void check_room(const RunDirectory& run, int64_t needed, Retention retention, FileSystem& files);

}  // namespace gyre
