#include "gyre/train/run_directory.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/data/dataset.h"

namespace gyre {
Config RunDirectory::load_config() const {
  if (!has_run()) {
    throw InputError(fmt::format("{}: no run is here (no config.toml); give the directory that gyre train --out made",
                                 root_.string()));
  }
  return gyre::load_config(config(), {});
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

void RunDirectory::create(const Config& config_to_save) const {
  make_directories(checkpoints(), files_);
  if (!is_there(checkpoints_marker())) {
    write_file_atomic(checkpoints_marker(), "This directory is where a run of gyre keeps its checkpoints.\n", files_);
  }
  make_directories(tokenizer(), files_);
  if (!is_there(tokenizer() / kMetaFile)) {
    copy_tokenizer(config_to_save.data.tokens, tokenizer(), files_);
  }
  write_file_atomic(config(), to_toml(config_to_save), files_);
}

}  // namespace gyre
