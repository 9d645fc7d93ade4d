// Checkpoints: directories that are whole or not there. <run>/checkpoints/step-00000100/ has the tensors of model and
// optimizer, each part in one file of one process, or in several of several (format/shards.h), and, written last,
// manifest.json with the sizes and checksums of all and of itself. Files of processes that do not see that directory
// lie in one of the same name on their host; the manifest, which is what makes the checkpoint, says where.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/manifest.h"
#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/file_system.h"
#include "gyre/core/files.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// Which checkpoints stay when another is written.
struct Retention {
  int64_t newest = 0;  // so many; 0: all
  int64_t every = 0;   // and those of steps that are multiples of it; 0: no others
};

// A file that one process has written, and what is in it.
struct WrittenShard {
  Part part = Part::Model;
  std::string name;
  WrittenFile file;
  uint64_t tensor_bytes = 0;
  std::vector<std::string> tensors;
  FilePlace place = {};  // where it does not lie beside the manifest
};

// Which file of a part is this process's; none where it has nothing of the part.
struct ShardNumbers {
  std::optional<ShardNumber> model = ShardNumber{}, optimizer = ShardNumber{};
};

// One process's files of a checkpoint, into the directory where it is made. Durable when it returns. RunError.
std::vector<WrittenShard> write_shards(const std::filesystem::path& directory, const NamedTensors& weights,
                                       const NamedTensors& optimizer, const ShardNumbers& numbers,
                                       FileSystem& files = system_files());

// A checkpoint that is being made, in a directory with a temporary name. Unless it is committed nothing stays of it,
// and earlier checkpoints are as they were.
class CheckpointUnderConstruction {
 public:
  // `attempt`: whatever makes the temporary name another one than that of a process which is to be over and may not be.
  CheckpointUnderConstruction(const std::filesystem::path& checkpoints, int64_t step,
                              FileSystem& files = system_files(), const std::string& attempt = "");
  const std::filesystem::path& directory() const { return directory_.path(); }
  // All shards are written: adds indexes and manifest and gives it its name. RunError also for a shard that is not
  // there, and for a tensor that is in two. `host`: of this directory, where shards lie elsewhere.
  void commit(const CheckpointRecord& record, const std::vector<WrittenShard>& shards, const std::string& host = "");

 private:
  std::filesystem::path target_;
  FileSystem& files_;
  DirectoryUnderConstruction directory_;
};

// Gives the parts of a checkpoint, which lie durably under a temporary name beside it, the checkpoint's, in place of
// what has it: parts that belong to nothing. Durable when it returns; whoever has the manifest commits that then.
// RunError.
void complete_part(const std::filesystem::path& checkpoints, const std::string& temporary, int64_t step,
                   FileSystem& files = system_files());
// Where parts of the checkpoints of `steps` are: removes all others, and what crashed runs left.
void keep_only(const std::filesystem::path& checkpoints, const std::vector<int64_t>& steps,
               FileSystem& files = system_files());

// Removes the oldest checkpoints that need not stay, and what crashed runs left. What cannot be removed stays until
// the next time. Whether it is certain that those that go do not come back with a power cut.
bool remove_obsolete(const std::filesystem::path& checkpoints, Retention retention, FileSystem& files = system_files());

// What files of these tensors take on a disk, or a little less than this.
int64_t shard_bytes(const NamedTensors& tensors);
// What make_room() would give back.
int64_t room_to_make(const std::filesystem::path& checkpoints, Retention retention);
// For a disk too full for the next save: removes already now what that would remove (the one to come counted), but
// never the newest, and what crashed runs left. As remove_obsolete().
bool make_room(const std::filesystem::path& checkpoints, Retention retention, FileSystem& files = system_files());
// Takes the name of a checkpoint that is of no use: it becomes damaged-step-00000100, in place of an earlier one.
// Returns where it is then.
std::filesystem::path set_aside(const std::filesystem::path& checkpoints, int64_t step,
                                FileSystem& files = system_files());

// Where the checkpoint of a step is, or would be.
std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, int64_t step);
// Steps of the checkpoints that are there, ascending. A directory that is not there has none; InputError for one that
// cannot be read, and for a link that leads nowhere.
std::vector<int64_t> list_checkpoints(const std::filesystem::path& checkpoints);
std::optional<int64_t> latest_checkpoint(const std::filesystem::path& checkpoints);

// A file of a checkpoint is not what was written.
class DamagedCheckpoint : public InputError {
 public:
  // `fault`: what is wrong with which file; `advice`: what to do.
  DamagedCheckpoint(std::string fault, const std::string& advice);
  const std::string& fault() const { return fault_; }

 private:
  std::string fault_;
};

// What somebody who has the manifest tells others, who are to read files of a checkpoint that they have.
struct CheckpointDescription {
  std::string manifest;
  std::map<std::string, std::string> indexes;  // by the name of the file
};

// A checkpoint that is read: what it says at once, its tensors when they are asked for. Sizes and checksums of files
// are checked before anything is taken from them. DamagedCheckpoint names the file and what to do; InputError where one
// is missing, or is not what was written elsewhere.
class CheckpointReader {
 public:
  CheckpointReader(std::filesystem::path checkpoints, int64_t step);
  // Files are looked for there, and nothing else.
  CheckpointReader(std::filesystem::path checkpoints, int64_t step, CheckpointDescription description);
  CheckpointDescription describe() const;
  const CheckpointRecord& record() const { return manifest_.record; }
  // InputError unless the files of these parts that have a tensor that is wanted are here: it names all that are not.
  void check_presence(const std::vector<Part>& parts, const WantedTensors& wanted = {}) const;
  // Only files that have a tensor that is wanted are looked at.
  NamedTensors read(Part part, const WantedTensors& wanted = {}) const;
  // Looks at every file that was written here, or has been brought here.
  void check() const;
  // Of the model. Looks at the beginnings of files alone.
  int64_t parameter_count() const;
  // By name, of the model's tensors in files that are here.
  std::map<std::string, std::vector<int64_t>> shapes() const;
  // For damage that another process has found.
  DamagedCheckpoint damaged(const std::string& fault) const;

 private:
  std::string path_of(const std::string& file) const { return (directory_ / file).string(); }
  DamagedCheckpoint damaged(const std::string& file, const std::string& what) const {
    return damaged(path_of(file) + ": " + what);
  }
  bool has(const std::string& file) const;
  // Where the file was written, if that was not here.
  const FilePlace* elsewhere(const std::string& file) const;
  void check_is_there(const std::string& file) const;
  void check_file(const std::string& file) const;
  std::string index(const std::string& name) const;
  std::string or_the_one_before() const;
  std::vector<std::string> shards_with(Part part, const WantedTensors& wanted) const;

  std::filesystem::path checkpoints_;
  int64_t step_;
  std::filesystem::path directory_;
  Manifest manifest_;
  std::optional<CheckpointDescription> description_;  // from somebody else
};

struct CheckpointState : CheckpointRecord {
  NamedTensors weights;    // fp32 masters by full name
  NamedTensors optimizer;  // by "<full name>/<what>"
};

enum class CheckpointParts { All, WeightsOnly };
// The whole checkpoint, as CheckpointReader reads it.
CheckpointState load_checkpoint(const std::filesystem::path& checkpoints, int64_t step,
                                CheckpointParts parts = CheckpointParts::All);

}  // namespace gyre
