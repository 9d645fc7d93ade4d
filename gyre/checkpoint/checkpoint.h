// Checkpoints: directories that are either complete or absent. <run>/checkpoints/step-00000100/ has the tensors of the
// model and of the optimizer, each part in one file, or in one file of each process that has some of it
// (format/shards.h). manifest.json, with the sizes and checksums of all files and of itself, is written last and makes
// it a checkpoint. Processes that do not see that directory write into one of the same name on their host, and the
// manifest says where.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/checkpoint_list.h"
#include "gyre/checkpoint/format/manifest.h"
#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/file_system.h"
#include "gyre/core/files.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// Which checkpoints stay when another is written.
struct Retention {
  int64_t newest = 0;  // keep so many of the newest; 0: all
  int64_t every = 0;   // and all whose step is a multiple of this; 0: no others
};

// A file that one process has written, and its contents.
struct WrittenShard {
  Part part = Part::Model;
  std::string name;
  WrittenFile file;
  uint64_t tensor_bytes = 0;
  std::vector<std::string> tensors;
  FilePlace place = {};  // if it does not lie beside the manifest
};

// The number of this process's file of each part; empty if the process has no tensors of that part.
struct ShardNumbers {
  std::optional<ShardNumber> model = ShardNumber{}, optimizer = ShardNumber{};
};

// Writes one file of a part into the directory where a checkpoint is built, as write_safetensors() does. The file is
// durable when this returns.
WrittenShard write_shard(const std::filesystem::path& directory, Part part, ShardNumber number,
                         const DeclaredTensors& tensors, const MakeTensor& make, FileSystem& files = system_files(),
                         const std::stop_token& stop = {});
// Writes one process's files of a checkpoint into the directory where it is built. The files are durable when this
// returns. Throws RunError, and Stopped (core/stopped.h) between two tensors.
std::vector<WrittenShard> write_shards(const std::filesystem::path& directory, const NamedTensors& weights,
                                       const NamedTensors& optimizer, const ShardNumbers& numbers,
                                       FileSystem& files = system_files(), const std::stop_token& stop = {});

// A checkpoint that is being built, in a directory with a temporary name. Unless it is committed nothing of it stays,
// and earlier checkpoints are unchanged.
class CheckpointUnderConstruction {
 public:
  // `attempt`: a part of the temporary name, so that it differs from that of a process that should be over but may not
  // be.
  CheckpointUnderConstruction(const std::filesystem::path& checkpoints, int64_t step,
                              FileSystem& files = system_files(), const std::string& attempt = "");
  const std::filesystem::path& directory() const { return directory_.path(); }
  // Called when all shards are written: adds indexes and manifest, and gives the directory its name. Throws RunError,
  // also if a shard is missing or has another size, or if a tensor is in two. `host`: of this directory, if shards lie
  // elsewhere.
  void commit(const CheckpointRecord& record, const std::vector<WrittenShard>& shards, const std::string& host = "");

 private:
  std::filesystem::path target_;
  FileSystem& files_;
  DirectoryUnderConstruction directory_;
};

// Renames a directory with parts of a checkpoint from `temporary` to the checkpoint's name. Its files must be durable;
// parts of that name that are there already belong to nothing and are replaced. The rename is durable when this
// returns, after which the process with the manifest commits it. Throws RunError.
void complete_part(const std::filesystem::path& checkpoints, const std::string& temporary, int64_t step,
                   FileSystem& files = system_files());
// For a directory of parts: removes all but those of the checkpoints of `steps`, and what crashed runs left.
void keep_only(const std::filesystem::path& checkpoints, const std::vector<int64_t>& steps,
               FileSystem& files = system_files());

// Removes the oldest checkpoints that need not stay, and what crashed runs left. What cannot be removed stays until the
// next time. Returns whether removed checkpoints cannot come back after a power cut.
bool remove_obsolete(const std::filesystem::path& checkpoints, Retention retention, FileSystem& files = system_files());

// A close upper bound of what files of these tensors take on a disk.
int64_t shard_bytes(const NamedTensors& tensors);
// The bytes that make_room() would free.
int64_t room_to_make(const std::filesystem::path& checkpoints, Retention retention);
// For a disk too full for the next save: removes what that save would remove, counting the checkpoint to come but never
// the newest, and what crashed runs left. Returns the same as remove_obsolete().
bool make_room(const std::filesystem::path& checkpoints, Retention retention, FileSystem& files = system_files());
// Renames a damaged checkpoint to damaged-step-00000100, replacing an earlier directory of that name. Returns its path.
std::filesystem::path set_aside(const std::filesystem::path& checkpoints, int64_t step,
                                FileSystem& files = system_files());

// A file of a checkpoint differs from what was written.
class DamagedCheckpoint : public InputError {
 public:
  // `fault`: what is wrong with which file; `advice`: what to do.
  DamagedCheckpoint(std::string fault, const std::string& advice);
  const std::string& fault() const { return fault_; }

 private:
  std::string fault_;
};

// The manifest and indexes of a checkpoint, as sent to processes that have some of its files but not these.
struct CheckpointDescription {
  std::string manifest;
  std::map<std::string, std::string> indexes;  // by the name of the file
};

// Reads a checkpoint: its record at once, its tensors on request. Sizes and checksums of files are checked before
// anything is taken from them. DamagedCheckpoint names the file and what to do; InputError is thrown if a file is
// missing, or if one brought from elsewhere is not what was written there.
class CheckpointReader {
 public:
  CheckpointReader(std::filesystem::path checkpoints, int64_t step);
  // With the description that another process sent: only files of tensors are read from the directory.
  CheckpointReader(std::filesystem::path checkpoints, int64_t step, CheckpointDescription description);
  CheckpointDescription describe() const;
  const CheckpointRecord& record() const { return manifest_.record; }
  // Throws InputError unless the files of these parts with a wanted tensor are all here. It names those that are
  // missing from the same place as the first.
  void check_presence(const std::vector<Part>& parts, const WantedTensors& wanted = {}) const;
  // Reads the wanted tensors. Files without any are not looked at.
  NamedTensors read(Part part, const WantedTensors& wanted = {}) const;
  // The same for tensors that are only copied from, as map_safetensors().
  NamedTensors map(Part part, const WantedTensors& wanted = {}) const;
  // Checks every file that was written here or has been brought here.
  void check() const;
  // Of the model. Reads only the beginnings of files.
  int64_t parameter_count() const;
  // By name, of the model's tensors in those files that are here.
  std::map<std::string, std::vector<int64_t>> shapes() const;
  // The error for damage that another process has found.
  DamagedCheckpoint damaged(const std::string& fault) const;

 private:
  std::string path_of(const std::string& file) const { return (directory_ / file).string(); }
  DamagedCheckpoint damaged(const std::string& file, const std::string& what) const {
    return damaged(path_of(file) + ": " + what);
  }
  bool has(const std::string& file) const;
  // Where the file was written; null if that was here.
  const FilePlace* elsewhere(const std::string& file) const;
  void check_is_there(const std::string& file) const;
  void check_file(const std::string& file) const;
  std::string index(const std::string& name) const;
  std::string or_the_one_before() const;
  std::vector<std::string> shards_with(Part part, const WantedTensors& wanted) const;
  template <typename Read>
  NamedTensors read_with(Read read, Part part, const WantedTensors& wanted) const;

  std::filesystem::path checkpoints_;
  int64_t step_;
  std::filesystem::path directory_;
  Manifest manifest_;
  std::optional<CheckpointDescription> description_;  // if another process has sent it
};

struct CheckpointState : CheckpointRecord {
  NamedTensors weights;    // fp32 masters by full name
  NamedTensors optimizer;  // by "<full name>/<what>"
};

enum class CheckpointParts { All, MappedWeights };
// The whole checkpoint, as CheckpointReader reads it, or the weights alone as it maps them: to be read, not changed.
CheckpointState load_checkpoint(const std::filesystem::path& checkpoints, int64_t step,
                                CheckpointParts parts = CheckpointParts::All);

}  // namespace gyre
