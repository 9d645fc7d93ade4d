// Checkpoints: directories that are whole or not there. <run>/checkpoints/step-00000100/ has model.safetensors,
// optimizer.safetensors and, written last, manifest.json with the sizes and checksums of both and of itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "gyre/checkpoint/format/manifest.h"
#include "gyre/core/file_system.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

struct CheckpointState : CheckpointRecord {
  NamedTensors weights;    // fp32 masters by full name
  NamedTensors optimizer;  // by "<full name>/<what>"
};

// Writes into a temporary directory, syncs, renames, syncs the parent; then remove_obsolete(). On failure (a full disk)
// the temporary directory goes, earlier checkpoints stay, and RunError says why.
void save_checkpoint(const std::filesystem::path& checkpoints, const CheckpointState& state, int64_t keep,
                     FileSystem& files = system_files());
// Removes the oldest checkpoints beyond `keep` (0: none) and what crashed runs left. What cannot be removed stays until
// the next time.
void remove_obsolete(const std::filesystem::path& checkpoints, int64_t keep, FileSystem& files = system_files());

// What a checkpoint of these tensors takes on a disk, or a little less than this.
int64_t checkpoint_bytes(const NamedTensors& weights, const NamedTensors& optimizer);
// What make_room() would give back.
int64_t room_to_make(const std::filesystem::path& checkpoints, int64_t keep);
// For a disk too full for the next save: removes already now what that would remove (all but the newest `keep` with the
// one to come), but never the newest, and what crashed runs left.
void make_room(const std::filesystem::path& checkpoints, int64_t keep, FileSystem& files = system_files());

// Steps of the checkpoints that are there, ascending. A directory that is not there has none; InputError for one that
// cannot be read, and for a link that leads nowhere.
std::vector<int64_t> list_checkpoints(const std::filesystem::path& checkpoints);
std::optional<int64_t> latest_checkpoint(const std::filesystem::path& checkpoints);

enum class CheckpointParts { All, WeightsOnly };
// Checks the size and checksum of every file that it reads first. InputError names the damaged file and what to do.
CheckpointState load_checkpoint(const std::filesystem::path& checkpoints, int64_t step,
                                CheckpointParts parts = CheckpointParts::All);

}  // namespace gyre
