#include "gyre/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

// What crashed saves left.
std::vector<fs::path> unfinished(const fs::path& checkpoints) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(checkpoints, ignored)) {
    if (entry.path().filename().string().rfind(kTemporary, 0) == 0) paths.push_back(entry.path());
  }
  return paths;
}

// Removes checkpoints and what crashed saves left. What is listed as a checkpoint stays whole at every moment: those
// that go lose their names first, and the loss is made durable. A failure is no loss; the next save tries again.
void remove_checkpoints(const fs::path& checkpoints, const std::vector<int64_t>& steps, FileSystem& files) {
  for (const int64_t step : steps) {
    const fs::path doomed = checkpoints / (kTemporary + ("old-" + directory_name(step)));
    remove_tree(doomed, files);
    files.rename(checkpoints / directory_name(step), doomed);
  }
  try {
    if (!steps.empty()) sync_directory(checkpoints, files);
  } catch (const RunError&) {
    return;
  }
  for (const fs::path& left : unfinished(checkpoints)) remove_tree(left, files);
}

// All but the newest `keep`; 0 keeps all.
std::vector<int64_t> obsolete(const fs::path& checkpoints, int64_t keep) {
  auto steps = list_checkpoints(checkpoints);
  const size_t kept = keep > 0 ? static_cast<size_t>(keep) : steps.size();
  steps.resize(steps.size() - std::min(steps.size(), kept));
  return steps;
}

// Checkpoints that may go before the next save; the newest always stays.
std::vector<int64_t> obsolete_with_the_next(const fs::path& checkpoints, int64_t keep) {
  return obsolete(checkpoints, keep == 0 ? 0 : std::max<int64_t>(1, keep - 1));
}

int64_t bytes_in(const fs::path& directory) {
  std::error_code ignored;
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const auto size = entry.file_size(ignored);
    if (!ignored) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

// What to do about a damaged checkpoint.
std::string advice(const fs::path& checkpoints, int64_t step) {
  const auto steps = list_checkpoints(checkpoints);
  const auto here = std::find(steps.begin(), steps.end(), step);
  const std::string directory = (checkpoints / directory_name(step)).string();
  if (here == steps.begin() || here == steps.end()) return "there is none before it; start another run";
  return fmt::format("remove {} to continue from step {}", directory, *(here - 1));
}

}  // namespace

void save_checkpoint(const fs::path& checkpoints, const CheckpointState& state, int64_t keep, FileSystem& files) {
  {
    DirectoryUnderConstruction directory(checkpoints / (kTemporary + directory_name(state.step)), files);
    const WrittenFile model = write_safetensors(directory.path() / kModelFile, state.weights, files);
    const WrittenFile optimizer = write_safetensors(directory.path() / kOptimizerFile, state.optimizer, files);
    FileWriter manifest(directory.path() / kManifest, files);
    manifest.write(to_text(Manifest{state, {{kModelFile, model}, {kOptimizerFile, optimizer}}}));
    manifest.close();
    directory.complete(checkpoints / directory_name(state.step));
  }
  remove_obsolete(checkpoints, keep, files);
}

void remove_obsolete(const fs::path& checkpoints, int64_t keep, FileSystem& files) {
  remove_checkpoints(checkpoints, obsolete(checkpoints, keep), files);
}

int64_t checkpoint_bytes(const NamedTensors& weights, const NamedTensors& optimizer) {
  constexpr int64_t kHeader = 256;  // of a tensor, with its name: more than it takes
  constexpr int64_t kManifestAndDirectory = 1 << 16;
  int64_t bytes = kManifestAndDirectory;
  for (const NamedTensors* tensors : {&weights, &optimizer}) {
    for (const auto& [name, tensor] : *tensors) {
      bytes += static_cast<int64_t>(tensor.nbytes() + name.size()) + kHeader;
    }
  }
  return bytes;
}

int64_t room_to_make(const fs::path& checkpoints, int64_t keep) {
  int64_t bytes = 0;
  for (const int64_t step : obsolete_with_the_next(checkpoints, keep)) {
    bytes += bytes_in(checkpoints / directory_name(step));
  }
  for (const fs::path& left : unfinished(checkpoints)) bytes += bytes_in(left);
  return bytes;
}

void make_room(const fs::path& checkpoints, int64_t keep, FileSystem& files) {
  remove_checkpoints(checkpoints, obsolete_with_the_next(checkpoints, keep), files);
}

std::vector<int64_t> list_checkpoints(const fs::path& checkpoints) {
  std::vector<int64_t> steps;
  if (!is_there(checkpoints)) return steps;
  std::error_code error;
  fs::directory_iterator entry(checkpoints, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (const auto step = step_of(entry->path().filename().string())) steps.push_back(*step);
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", checkpoints.string(), error.message()));
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<int64_t> latest_checkpoint(const fs::path& checkpoints) {
  const auto steps = list_checkpoints(checkpoints);
  return steps.empty() ? std::nullopt : std::optional(steps.back());
}

CheckpointState load_checkpoint(const fs::path& checkpoints, int64_t step, CheckpointParts parts) {
  const fs::path directory = checkpoints / directory_name(step);
  const auto damaged = [&](const char* file, const std::string& what) -> InputError {
    return InputError(fmt::format("{}: {}; the checkpoint is damaged: {}", (directory / file).string(), what,
                                  advice(checkpoints, step)));
  };
  std::error_code none;
  if (!fs::exists(directory / kManifest, none)) throw damaged(kManifest, "is missing");
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
    if (parts == CheckpointParts::WeightsOnly && file != kModelFile) continue;
    if (!fs::is_regular_file(directory / file)) throw damaged(file.c_str(), "is missing");
    if (fs::file_size(directory / file) != written.bytes) throw damaged(file.c_str(), "its size differs");
    if (file_checksum(directory / file) != written.checksum) throw damaged(file.c_str(), "its checksum differs");
  }
  CheckpointState state{manifest.record, {}, {}};
  if (state.step != step) throw damaged(kManifest, "is of another step");
  state.weights = read_safetensors(directory / kModelFile);
  if (parts == CheckpointParts::All) state.optimizer = read_safetensors(directory / kOptimizerFile);
  return state;
}

}  // namespace gyre
