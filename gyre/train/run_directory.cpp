#include "gyre/train/run_directory.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/wrong_file.h"
#include "gyre/data/dataset.h"
#include "gyre/train/initial_weights.h"

namespace gyre {
namespace fs = std::filesystem;

// With "/." appended, the normal form always ends with a slash, which parent_path() then removes.
std::filesystem::path RunDirectory::absolute_root() const {
  return std::filesystem::absolute(root_ / ".").lexically_normal().parent_path();
}

Config RunDirectory::load_config() const {
  refuse_file(root_, "the run's directory", config().filename());
  if (!has_run()) {
    throw InputError(fmt::format("{}: no run is here (no config.toml); give the directory that gyre train --out made{}",
                                 root_.string(), hint_of_import(root_)));
  }
  return gyre::load_config(config(), {}, Tokens::Optional);
}

Config RunDirectory::load_config_of_model() const {
  Config loaded = load_config();
  if (loaded.model.vocabulary == 0) {
    throw InputError(
        fmt::format("{}: [model] vocabulary is 0, and the configuration of a run has its model's; put back "
                    "the file that the run had",
                    config().string()));
  }
  return loaded;
}

void RunDirectory::check_in_place() const {
  std::error_code none;
  for (const auto& file : {config(), checkpoints_marker()}) {
    if (std::filesystem::exists(file, none)) continue;
    throw RunError(
        fmt::format("{}: was moved or removed while the run was writing to it, or its disk has gone ({} is "
                    "missing); put it back",
                    (file == config() ? root_ : checkpoints()).string(), file.string()));
  }
}

std::optional<PartsMark> RunDirectory::read_parts_mark() const {
  std::error_code none;
  if (!std::filesystem::is_regular_file(parts_mark(), none)) return std::nullopt;
  try {
    return gyre::parse_parts_mark(read_file(parts_mark()));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", parts_mark().string(), error.what()));
  }
}

void RunDirectory::write_parts_mark(const PartsMark& mark) const {
  write_file_atomic(parts_mark(), to_text(mark), files_);
}

void RunDirectory::refuse_parts() const {
  const auto mark = read_parts_mark();
  if (!mark || !mark->is_of_parts()) return;
  throw InputError(
      fmt::format("{}: has only parts of checkpoints; the run's own directory is {} on {}: start rank 0 there, and "
                  "read the run there",
                  root_.string(), mark->directory, mark->host));
}

void RunDirectory::refuse_text() const {
  if (!is_there(root_ / kMetaFile)) return;
  throw InputError(
      fmt::format("{}: is text that gyre prepare made, and no place for a run; choose another --out", root_.string()));
}

// The Hugging Face files of an imported model are passed on to every run that begins with its weights.
void RunDirectory::copy_hugging_face(const Config& config_to_save) const {
  const fs::path from = InitialWeights(config_to_save.run.init_from).run().hugging_face();
  if (!is_there(from)) return;
  DirectoryUnderConstruction copy(hugging_face().string() + ".tmp", files_);
  std::error_code error;
  for (const fs::path& file : entries_of(from, error)) {
    if (fs::is_regular_file(file)) write_new_file(copy.path() / file.filename(), read_file(file, kAnyLength), files_);
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", from.string(), error.message()));
  copy.complete(hugging_face());
}

void RunDirectory::create(const Config& config_to_save, const Dataset* data) const {
  make_directories(checkpoints(), files_);
  if (!is_there(checkpoints_marker())) {
    write_file_atomic(checkpoints_marker(), "This directory is where a run of gyre keeps its checkpoints.\n", files_);
  }
  if (data != nullptr && !is_there(tokenizer() / kMetaFile)) {
    make_directories(tokenizer(), files_);
    data->write_tokenizer(tokenizer(), files_);
  }
  if (!config_to_save.run.init_from.empty() && !is_there(hugging_face())) copy_hugging_face(config_to_save);
  write_file_atomic(config(), to_toml(config_to_save), files_);
}

}  // namespace gyre
