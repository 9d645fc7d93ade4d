// The layout of a run's directory. It is self-contained: configuration, metrics, checkpoints and what is needed to read
// text.
//   config.toml      the resolved configuration
//   metrics.jsonl    one JSON object a line
//   tensorboard/     the same as TensorBoard's event files, if [run] tensorboard is set
//   live.json        what the run is doing now, unless [run] live_seconds is 0 (report/live.h)
//   costs.json       measured costs, for the simulator
//   checkpoints/     step-00000100/ ..., damaged-step-00000100/ ... of those set aside, .tmp-... of saves under way;
//                    .of-a-run marks the directory that the run made, .hosts says which hosts have parts of it
//   .lock            held by the process that trains the run
//   tokenizer/       meta.json, which says what the data is, and the tokenizer's model if there is one
//   hugging_face/    of an imported model: the types of its tensors, and if it came from transformers its config.json
//   and
//                    the files of its tokenizer
#pragma once

#include <filesystem>
#include <optional>

#include "gyre/checkpoint/format/parts_mark.h"
#include "gyre/config/config.h"
#include "gyre/core/files.h"
#include "gyre/data/sources.h"

namespace gyre {

class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path root, FileSystem& files = system_files())
      : files_(files), root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  // The path by which processes tell each other where their directory is: the same for one directory, however it is
  // written.
  std::filesystem::path absolute_root() const;
  std::filesystem::path config() const { return root_ / "config.toml"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path tensorboard() const { return root_ / "tensorboard"; }
  std::filesystem::path live() const { return root_ / "live.json"; }
  std::filesystem::path costs() const { return root_ / "costs.json"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  // Marks checkpoints/ as the directory that this run made, unlike the empty mount point of a missing disk.
  std::filesystem::path checkpoints_marker() const { return checkpoints() / ".of-a-run"; }
  // If hosts have run directories of their own: which run this one belongs to, and what it has (format/parts_mark.h).
  std::filesystem::path parts_mark() const { return checkpoints() / ".hosts"; }
  std::filesystem::path tokenizer() const { return root_ / "tokenizer"; }
  std::filesystem::path hugging_face() const { return root_ / "hugging_face"; }

  // Whether a run has begun here. Throws InputError if that cannot be determined.
  bool has_run() const { return is_there(config()); }
  // Throws InputError if there is no run here.
  Config load_config() const;
  // The same for those who need the model and not the data: throws InputError if its vocabulary is left to the data.
  Config load_config_of_model() const;
  // Creates the directory and writes the marker, configuration and tokenizer, each atomically. An existing tokenizer
  // stays, since the run's text was made with it; without `data` the caller writes the tokenizer. The Hugging Face
  // files of the model are copied from the run that [run] init_from names.
  void create(const Config& config, const Dataset* data = nullptr) const;
  // Empty if there is no mark. Throws InputError if it cannot be read.
  std::optional<PartsMark> read_parts_mark() const;
  void write_parts_mark(const PartsMark& mark) const;
  // Throws InputError if this directory has only parts of checkpoints, and the run's own is on another host.
  void refuse_parts() const;
  // Throws InputError if gyre prepare has put its files here.
  void refuse_text() const;
  // Called while a run writes: throws RunError if this is no longer the directory that create() made. It was moved or
  // removed, or its disk is gone; what would be written now would be apart from the rest.
  void check_in_place() const;

 private:
  void copy_hugging_face(const Config& config) const;

  FileSystem& files_;
  std::filesystem::path root_;
};

}  // namespace gyre
