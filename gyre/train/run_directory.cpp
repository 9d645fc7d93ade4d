#include "gyre/train/run_directory.h"

#include <fmt/format.h>

#include <system_error>

#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre {
namespace {

void make_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw InputError(fmt::format("{}: cannot be created: {}; choose another --out", path.string(), error.message()));
}

}  // namespace

Config RunDirectory::load_config() const {
  if (!has_run()) {
    throw InputError(fmt::format("{}: no run is here (no config.toml); give the directory that gyre train --out made",
                                 root_.string()));
  }
  return gyre::load_config(config(), {});
}

void RunDirectory::create(const Config& config_to_save) const {
  make_directory(checkpoints());
  make_directory(tokenizer());
  const std::filesystem::path data = config_to_save.data.tokens;
  for (const char* file : {"meta.json", "tokenizer.model"}) {
    if (std::filesystem::exists(data / file)) write_file_atomic(tokenizer() / file, read_file(data / file));
  }
  write_file_atomic(config(), to_toml(config_to_save));
}

}  // namespace gyre
