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
  const WrittenFile model = write_safetensors(temporary.path() / kModelFile, state.weights);
  const WrittenFile optimizer = write_safetensors(temporary.path() / kOptimizerFile, state.optimizer);
  FileWriter manifest(temporary.path() / kManifest);
  manifest.write(to_text(Manifest{state, {{kModelFile, model}, {kOptimizerFile, optimizer}}}));
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
  const std::string text = read_file(directory / kManifest);
  const Manifest manifest = [&] {
    try {
      return parse_manifest(text);
    } catch (const NewerManifest& error) {
      throw InputError(fmt::format("{}: {}", (directory / kManifest).string(), error.what()));
    } catch (const InputError& error) {
      throw damaged(kManifest, error.what());
    }
  }();
  for (const auto& [file, written] : manifest.files) {
    if (!fs::is_regular_file(directory / file)) throw damaged(file.c_str(), "is missing");
    if (fs::file_size(directory / file) != written.bytes) throw damaged(file.c_str(), "its size differs");
    if (file_checksum(directory / file) != written.checksum) throw damaged(file.c_str(), "its checksum differs");
  }
  CheckpointState state{manifest.record, {}, {}};
  if (state.step != step) throw damaged(kManifest, "is of another step");
  state.weights = read_safetensors(directory / kModelFile);
  state.optimizer = read_safetensors(directory / kOptimizerFile);
  return state;
}

}  // namespace gyre
