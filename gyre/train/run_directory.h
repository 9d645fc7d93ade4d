// The layout of a run's directory. It is self-contained: configuration, metrics, checkpoints and what reading text
// needs.
//   config.toml      the resolved configuration
//   metrics.jsonl    one JSON object a line
//   tensorboard/     the same as TensorBoard's event files, where [run] tensorboard asks for them
//   live.json        what it does now, where [run] live_seconds is not 0 (report/live.h)
//   checkpoints/     step-00000100/ ...
//   tokenizer/       meta.json, which says what the data is, and the tokenizer's model if there is one
//   hugging_face/    of a model that came from transformers: its config.json and the files of its tokenizer
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
  // As processes tell each other where theirs is: the same for one directory, however it is written.
  std::filesystem::path absolute_root() const;
  std::filesystem::path config() const { return root_ / "config.toml"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path tensorboard() const { return root_ / "tensorboard"; }
  std::filesystem::path live() const { return root_ / "live.json"; }
  std::filesystem::path costs() const { return root_ / "costs.json"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  // Says that checkpoints/ is the directory this run made, and not the empty one where a disk was mounted.
  std::filesystem::path checkpoints_marker() const { return checkpoints() / ".of-a-run"; }
  // Where hosts have run directories of their own: which run this is one of, and what it has (format/parts_mark.h).
  std::filesystem::path parts_mark() const { return checkpoints() / ".hosts"; }
  std::filesystem::path tokenizer() const { return root_ / "tokenizer"; }
  std::filesystem::path hugging_face() const { return root_ / "hugging_face"; }

  // Whether a run has begun here. InputError where that cannot be told.
  bool has_run() const { return is_there(config()); }
  // InputError unless a run is here.
  Config load_config() const;
  // Creates the directory and writes the marker, configuration and tokenizer, each atomically. The tokenizer of a run
  // that is here already stays: it is what its text was made with; that of a run without `data` is written otherwise.
  // What the model came with from transformers comes from the run that [run] init_from names.
  void create(const Config& config, const Dataset* data = nullptr) const;
  // Nothing where there is no mark. InputError.
  std::optional<PartsMark> read_parts_mark() const;
  void write_parts_mark(const PartsMark& mark) const;
  // InputError where another host has the run's own directory, and here are parts of checkpoints alone.
  void refuse_parts() const;
  // InputError where gyre prepare has put its files.
  void refuse_text() const;
  // While a run writes: RunError when the directory is not the one that create() made any more. It was moved or
  // removed, or a disk has gone; what would be written now would be apart from the rest.
  void check_in_place() const;

 private:
  void copy_hugging_face(const Config& config) const;

  FileSystem& files_;
  std::filesystem::path root_;
};

}  // namespace gyre
