#include "gyre/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kTemporary = ".tmp-";  // prefix of directories under construction

std::string directory_name(int64_t step) {
  return fmt::format("step-{:08}", step);
}

std::optional<int64_t> step_of(const std::string& name) {
  if (name.rfind("step-", 0) != 0) return std::nullopt;
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size() || name != directory_name(step)) return std::nullopt;
  return step;
}

std::string text_checksum(const std::string& text) {
  Checksum checksum;
  checksum.update(text.data(), text.size());
  return checksum.hex();
}

Json manifest_of(const CheckpointState& state, const WrittenFile& model, const WrittenFile& optimizer) {
  Json manifest = {{"format", "gyre-checkpoint"},
                   {"version", 1},
                   {"step", state.step},
                   {"microbatches", state.microbatches},
                   {"tokens", state.tokens},
                   {"seed", state.seed},
                   {"drains", state.drains},
                   {"model", state.model},
                   {"files",
                    {{kModel, {{"bytes", model.bytes}, {"checksum", model.checksum}}},
                     {kOptimizer, {{"bytes", optimizer.bytes}, {"checksum", optimizer.checksum}}}}}};
  manifest["checksum"] = text_checksum(manifest.dump());
  return manifest;
}

// Removes a directory under construction unless told to keep it.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    fs::remove_all(path_, error);
    fs::create_directories(path_, error);
    if (error) throw RunError(fmt::format("{}: cannot be created: {}", path_.string(), error.message()));
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const fs::path& path() const { return path_; }
  void rename_to(const fs::path& target) {
    // A resumed run saves the same step again: the two directories change places in one step, and the old one goes.
    const bool exchange = fs::exists(target);
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), exchange ? RENAME_EXCHANGE : 0) != 0) {
      throw RunError(
          fmt::format("{}: cannot be renamed to {}: {}", path_.string(), target.string(), std::strerror(errno)));
    }
    if (exchange) return;
    kept_ = true;
  }

 private:
  fs::path path_;
  bool kept_ = false;
};

void remove_old(const fs::path& checkpoints, int keep) {
  std::error_code ignored;
  const auto steps = list_checkpoints(checkpoints);
  for (size_t i = 0; keep > 0 && i + static_cast<size_t>(keep) < steps.size(); ++i) {
    fs::remove_all(checkpoints / directory_name(steps[i]), ignored);
  }
  for (const auto& entry : fs::directory_iterator(checkpoints, ignored)) {
    if (entry.path().filename().string().rfind(kTemporary, 0) == 0) fs::remove_all(entry.path(), ignored);
  }
}

// What to do about a damaged checkpoint.
std::string advice(const fs::path& checkpoints, int64_t step) {
  const auto steps = list_checkpoints(checkpoints);
  const auto here = std::find(steps.begin(), steps.end(), step);
  const std::string directory = (checkpoints / directory_name(step)).string();
  if (here == steps.begin() || here == steps.end()) return fmt::format("remove {} and start again", directory);
  return fmt::format("remove {} to continue from step {}", directory, *(here - 1));
}

}  // namespace

void save_checkpoint(const fs::path& checkpoints, const CheckpointState& state, int keep) {
  TemporaryDirectory temporary(checkpoints / (kTemporary + directory_name(state.step)));
  const WrittenFile model = write_safetensors(temporary.path() / kModel, state.weights);
  const WrittenFile optimizer = write_safetensors(temporary.path() / kOptimizer, state.optimizer);
  FileWriter manifest(temporary.path() / kManifest);
  manifest.write(manifest_of(state, model, optimizer).dump() + "\n");
  manifest.close();
  sync_directory(temporary.path());
  temporary.rename_to(checkpoints / directory_name(state.step));
  sync_directory(checkpoints);
  remove_old(checkpoints, keep);
}

std::vector<int64_t> list_checkpoints(const fs::path& checkpoints) {
  std::vector<int64_t> steps;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(checkpoints, missing)) {
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<int64_t> latest_checkpoint(const fs::path& checkpoints) {
  const auto steps = list_checkpoints(checkpoints);
  return steps.empty() ? std::nullopt : std::optional(steps.back());
}

CheckpointState load_checkpoint(const fs::path& checkpoints, int64_t step) {
  const fs::path directory = checkpoints / directory_name(step);
  const auto damaged = [&](const char* file, const std::string& what) -> InputError {
    return InputError(fmt::format("{}: {}; the checkpoint is damaged: {}", (directory / file).string(), what,
                                  advice(checkpoints, step)));
  };
  CheckpointState state;
  try {
    const std::string text = read_file(directory / kManifest);
    Json manifest = Json::parse(text);
    const std::string expected = manifest.at("checksum").get<std::string>();
    Json content = manifest;
    content.erase("checksum");
    if (text_checksum(content.dump()) != expected || manifest.dump() + "\n" != text)
      throw damaged(kManifest, "its checksum differs");
    if (manifest.at("version").get<int>() != 1) {
      throw InputError(fmt::format("{}: version {} is newer than this gyre understands",
                                   (directory / kManifest).string(), manifest.at("version").dump()));
    }
    for (const auto& [file, entry] : manifest.at("files").items()) {
      if (!fs::is_regular_file(directory / file)) throw damaged(file.c_str(), "is missing");
      if (fs::file_size(directory / file) != entry.at("bytes").get<uint64_t>())
        throw damaged(file.c_str(), "its size differs");
      if (file_checksum(directory / file) != entry.at("checksum").get<std::string>())
        throw damaged(file.c_str(), "its checksum differs");
    }
    state.step = manifest.at("step").get<int64_t>();
    state.microbatches = manifest.at("microbatches").get<int64_t>();
    state.tokens = manifest.at("tokens").get<int64_t>();
    state.seed = manifest.at("seed").get<uint64_t>();
    state.drains = manifest.at("drains").get<std::vector<int64_t>>();
    state.model = manifest.at("model");
  } catch (const Json::exception&) {
    throw damaged(kManifest, "is not the JSON that gyre writes");
  }
  if (state.step != step) throw damaged(kManifest, "is of another step");
  state.weights = read_safetensors(directory / kModel);
  state.optimizer = read_safetensors(directory / kOptimizer);
  return state;
}

}  // namespace gyre
