#include "gyre/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "gyre/core/directories.h"
#include "gyre/core/error.h"
#include "gyre/core/host_name.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kTemporary = ".tmp-";  // prefix of directories under construction

std::string absolute_text(const fs::path& path) {
  return fs::absolute(path).lexically_normal().string();
}

// Directories that crashed saves have left.
std::vector<fs::path> unfinished(const fs::path& checkpoints) {
  std::error_code ignored;
  std::vector<fs::path> paths = entries_of(checkpoints, ignored);
  std::erase_if(paths, [](const fs::path& path) { return !path.filename().string().starts_with(kTemporary); });
  return paths;
}

// Removes checkpoints and what crashed saves left. Whatever is listed as a checkpoint is whole at every moment: those
// to remove are renamed first, and the renames made durable. A failure loses nothing, since the next save tries again.
// Returns whether the renames are durable.
bool remove_checkpoints(const fs::path& checkpoints, const std::vector<int64_t>& steps, FileSystem& files) {
  for (const int64_t step : steps) {
    const fs::path doomed = checkpoints / (kTemporary + ("old-" + checkpoint_name(step)));
    remove_tree(doomed, files);
    files.rename(checkpoints / checkpoint_name(step), doomed);
  }
  try {
    if (!steps.empty()) sync_directory(checkpoints, files);
  } catch (const RunError&) {
    return false;
  }
  for (const fs::path& left : unfinished(checkpoints)) remove_tree(left, files);
  return true;
}

std::vector<int64_t> obsolete(const fs::path& checkpoints, Retention retention) {
  auto steps = list_checkpoints(checkpoints);
  const size_t kept = retention.newest > 0 ? static_cast<size_t>(retention.newest) : steps.size();
  steps.resize(steps.size() - std::min(steps.size(), kept));
  std::erase_if(steps, [&](int64_t step) { return retention.every > 0 && step % retention.every == 0; });
  return steps;
}

// Checkpoints that may go before the next save; the newest always stays.
std::vector<int64_t> obsolete_with_the_next(const fs::path& checkpoints, Retention retention) {
  if (retention.newest > 0) retention.newest = std::max<int64_t>(1, retention.newest - 1);
  return obsolete(checkpoints, retention);
}

int64_t bytes_in(const fs::path& directory) {
  std::error_code ignored;
  int64_t bytes = 0;
  for (const fs::path& file : entries_of(directory, ignored)) {
    const auto size = fs::file_size(file, ignored);
    if (!ignored) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

std::optional<int64_t> step_before(const fs::path& checkpoints, int64_t step) {
  const auto steps = list_checkpoints(checkpoints);
  const auto found = std::find(steps.begin(), steps.end(), step);
  return found == steps.begin() || found == steps.end() ? std::nullopt : std::optional(*(found - 1));
}

}  // namespace

WrittenShard write_shard(const fs::path& directory, Part part, ShardNumber number, const DeclaredTensors& tensors,
                         const MakeTensor& make, FileSystem& files, const std::stop_token& stop) {
  WrittenShard shard{.part = part, .name = shard_name(part, number), .file = {}, .tensors = {}};
  shard.file = write_safetensors(directory / shard.name, tensors, make, files, stop);
  for (const auto& [name, tensor] : tensors) {
    shard.tensors.push_back(name);
    shard.tensor_bytes += bytes_of(tensor);
  }
  return shard;
}

std::vector<WrittenShard> write_shards(const fs::path& directory, const NamedTensors& weights,
                                       const NamedTensors& optimizer, const ShardNumbers& numbers, FileSystem& files,
                                       const std::stop_token& stop) {
  std::vector<WrittenShard> written;
  const auto write = [&](Part part, const NamedTensors& tensors, ShardNumber number) {
    const auto get = [&](const std::string& name) { return tensors.at(name); };
    written.push_back(write_shard(directory, part, number, declare(tensors), get, files, stop));
  };
  if (numbers.model) write(Part::Model, weights, *numbers.model);
  if (numbers.optimizer) write(Part::Optimizer, optimizer, *numbers.optimizer);
  return written;
}

CheckpointUnderConstruction::CheckpointUnderConstruction(const fs::path& checkpoints, int64_t step, FileSystem& files,
                                                         const std::string& attempt)
    : target_(checkpoints / checkpoint_name(step)),
      files_(files),
      directory_(checkpoints / (kTemporary + checkpoint_name(step) + attempt), files) {}

void CheckpointUnderConstruction::commit(const CheckpointRecord& record, const std::vector<WrittenShard>& shards,
                                         const std::string& host) {
  Manifest manifest{record, {}, {}};
  const auto add = [&](const std::string& name, const std::string& text) {
    write_new_file(directory() / name, text, files_);
    manifest.files[name] = {text.size(), text_checksum(text)};
  };
  for (const WrittenShard& shard : shards) manifest.files[shard.name] = shard.file;
  for (const Part part : kParts) {
    ShardIndex index;
    bool several = false;
    for (const WrittenShard& shard : shards) {
      if (shard.part != part) continue;
      several |= shard.name != shard_name(part, {});
      index.total_size += shard.tensor_bytes;
      for (const std::string& tensor : shard.tensors) {
        const auto [other, is_new] = index.weight_map.emplace(tensor, shard.name);
        if (is_new) continue;
        throw RunError(
            fmt::format("{}: '{}' is in {} and in {}", directory().string(), tensor, other->second, shard.name));
      }
    }
    if (several) add(index_name(part), to_text(index));
  }
  const bool all_here =
      std::all_of(shards.begin(), shards.end(), [](const WrittenShard& shard) { return shard.place.host.empty(); });
  if (!all_here) {
    for (const auto& [name, file] : manifest.files) manifest.places[name] = {host, absolute_text(target_)};
    for (const WrittenShard& shard : shards) {
      if (!shard.place.host.empty()) manifest.places[shard.name] = shard.place;
    }
  }
  for (const auto& [name, file] : manifest.files) {
    const auto place = manifest.places.find(name);
    if (place != manifest.places.end() && place->second != FilePlace{host, absolute_text(target_)}) continue;
    std::error_code error;
    if (fs::file_size(directory() / name, error) == file.bytes && !error) continue;
    throw RunError(
        fmt::format("{}: is not as it was written: the directory is not the same for all processes of the "
                    "run, or somebody changed it",
                    (directory() / name).string()));
  }
  write_new_file(directory() / kManifest, to_text(manifest), files_);
  directory_.complete(target_);
}

void complete_part(const fs::path& checkpoints, const std::string& temporary, int64_t step, FileSystem& files) {
  const fs::path target = checkpoints / checkpoint_name(step);
  remove_tree(target, files);
  rename_path(checkpoints / temporary, target, files);
  sync_directory(checkpoints, files);
}

void keep_only(const fs::path& checkpoints, const std::vector<int64_t>& steps, FileSystem& files) {
  auto others = list_checkpoints(checkpoints);
  std::erase_if(others, [&](int64_t step) { return std::find(steps.begin(), steps.end(), step) != steps.end(); });
  remove_checkpoints(checkpoints, others, files);
}

bool remove_obsolete(const fs::path& checkpoints, Retention retention, FileSystem& files) {
  return remove_checkpoints(checkpoints, obsolete(checkpoints, retention), files);
}

int64_t shard_bytes(const NamedTensors& tensors) {
  constexpr int64_t kHeader = 384;  // upper bound of a tensor's entries in header and index, but for its name
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    bytes += static_cast<int64_t>(tensor.nbytes() + 2 * name.size()) + kHeader;
  }
  return bytes;
}

int64_t room_to_make(const fs::path& checkpoints, Retention retention) {
  int64_t bytes = 0;
  for (const int64_t step : obsolete_with_the_next(checkpoints, retention)) {
    bytes += bytes_in(checkpoints / checkpoint_name(step));
  }
  for (const fs::path& left : unfinished(checkpoints)) bytes += bytes_in(left);
  return bytes;
}

bool make_room(const fs::path& checkpoints, Retention retention, FileSystem& files) {
  return remove_checkpoints(checkpoints, obsolete_with_the_next(checkpoints, retention), files);
}

fs::path set_aside(const fs::path& checkpoints, int64_t step, FileSystem& files) {
  const fs::path aside = checkpoints / ("damaged-" + checkpoint_name(step));
  remove_tree(aside, files);
  rename_path(checkpoints / checkpoint_name(step), aside, files);
  sync_directory(checkpoints, files);
  return aside;
}

DamagedCheckpoint::DamagedCheckpoint(std::string fault, const std::string& advice)
    : InputError(fmt::format("{}; the checkpoint is damaged: {}", fault, advice)), fault_(std::move(fault)) {}

CheckpointReader::CheckpointReader(fs::path checkpoints, int64_t step)
    : checkpoints_(std::move(checkpoints)), step_(step), directory_(checkpoints_ / checkpoint_name(step)) {
  check_is_there(kManifest);
  const std::string text = read_file(directory_ / kManifest);
  try {
    manifest_ = parse_manifest(text);
  } catch (const NewerManifest& error) {
    throw InputError(fmt::format("{}: {}", path_of(kManifest), error.what()));
  } catch (const InputError& error) {
    throw damaged(kManifest, error.what());
  }
  if (manifest_.record.step != step) throw damaged(kManifest, "is of another step");
}

CheckpointReader::CheckpointReader(fs::path checkpoints, int64_t step, CheckpointDescription description)
    : checkpoints_(std::move(checkpoints)),
      step_(step),
      directory_(checkpoints_ / checkpoint_name(step)),
      manifest_(parse_manifest(description.manifest)),
      description_(std::move(description)) {}

CheckpointDescription CheckpointReader::describe() const {
  CheckpointDescription description{to_text(manifest_), {}};
  for (const Part part : kParts) {
    const std::string name = index_name(part);
    if (manifest_.files.count(name) > 0) description.indexes[name] = index(name);
  }
  return description;
}

DamagedCheckpoint CheckpointReader::damaged(const std::string& fault) const {
  const auto before = step_before(checkpoints_, step_);
  return {fault, before ? fmt::format("remove {} to continue from step {}", directory_.string(), *before)
                        : "there is none before it; start another run"};
}

// Advice for errors; none if another process chose the checkpoint, since this one cannot choose another.
std::string CheckpointReader::or_the_one_before() const {
  if (description_) return "";
  const auto before = step_before(checkpoints_, step_);
  return before ? fmt::format(", or remove {} to continue from step {}", directory_.string(), *before)
                : ", there is no checkpoint before it";
}

bool CheckpointReader::has(const std::string& file) const {
  std::error_code none;
  return fs::is_regular_file(directory_ / file, none);
}

const FilePlace* CheckpointReader::elsewhere(const std::string& file) const {
  const auto place = manifest_.places.find(file);
  if (place == manifest_.places.end()) return nullptr;
  return place->second == FilePlace{host_name(), absolute_text(directory_)} ? nullptr : &place->second;
}

void CheckpointReader::check_is_there(const std::string& file) const {
  if (has(file)) return;
  if (const FilePlace* place = elsewhere(file)) {
    throw InputError(fmt::format("{}: is not here; {} has it in {}: copy it into {} here{}", path_of(file), place->host,
                                 place->directory, absolute_text(directory_), or_the_one_before()));
  }
  throw InputError(fmt::format("{}: is missing; put it back{}", path_of(file), or_the_one_before()));
}

void CheckpointReader::check_presence(const std::vector<Part>& parts, const WantedTensors& wanted) const {
  std::vector<std::string> lacking;
  for (const Part part : parts) {
    for (const std::string& file : shards_with(part, wanted)) {
      if (manifest_.files.count(file) > 0 && !has(file)) lacking.push_back(file);
    }
  }
  if (lacking.empty()) return;
  const FilePlace* const place = elsewhere(lacking[0]);
  if (lacking.size() == 1 || place == nullptr) check_is_there(lacking[0]);
  std::erase_if(lacking, [&](const std::string& file) {
    const FilePlace* const other = elsewhere(file);
    return other == nullptr || *other != *place;
  });
  if (lacking.size() == 1) check_is_there(lacking[0]);
  throw InputError(fmt::format("{}: {} are not here; {} has them in {}: copy them into {} here{}", directory_.string(),
                               join(lacking, ", "), place->host, place->directory, absolute_text(directory_),
                               or_the_one_before()));
}

void CheckpointReader::check_file(const std::string& file) const {
  const WrittenFile& written = manifest_.files.at(file);
  std::error_code not_there;
  const auto size = fs::file_size(directory_ / file, not_there);
  if (not_there) check_is_there(file);
  const auto expect = [&](bool holds, const char* what) {
    if (holds) return;
    const FilePlace* const place = elsewhere(file);
    if (place == nullptr) throw damaged(file, what);
    throw InputError(fmt::format("{}: {} from what was written on {} in {}; copy it from there again{}", path_of(file),
                                 what, place->host, place->directory, or_the_one_before()));
  };
  expect(!not_there && size == written.bytes, "its size differs");
  expect(file_checksum(directory_ / file) == written.checksum, "its checksum differs");
}

std::string CheckpointReader::index(const std::string& name) const {
  if (description_) return description_->indexes.at(name);
  check_file(name);
  return read_file(directory_ / name);
}

std::vector<std::string> CheckpointReader::shards_with(Part part, const WantedTensors& wanted) const {
  const auto shards = shards_of(manifest_, part);
  if (shards.size() == 1 || !wanted) return shards;
  const std::string name = index_name(part), text = index(name);
  std::set<std::string> with;
  try {
    for (const auto& [tensor, file] : parse_shard_index(text).weight_map) {
      if (wanted(tensor)) with.insert(file);
    }
  } catch (const InputError& error) {
    throw damaged(name, error.what());
  }
  return {with.begin(), with.end()};
}

NamedTensors CheckpointReader::read(Part part, const WantedTensors& wanted) const {
  return read_with(read_safetensors, part, wanted);
}

NamedTensors CheckpointReader::map(Part part, const WantedTensors& wanted) const {
  return read_with(map_safetensors, part, wanted);
}

template <typename Read>
NamedTensors CheckpointReader::read_with(Read read, Part part, const WantedTensors& wanted) const {
  NamedTensors tensors;
  for (const std::string& file : shards_with(part, wanted)) {
    if (manifest_.files.count(file) == 0) throw damaged(index_name(part), "names a file that the manifest does not");
    check_file(file);
    tensors.merge(read(directory_ / file, wanted));
  }
  return tensors;
}

void CheckpointReader::check() const {
  for (const auto& [file, written] : manifest_.files) {
    if (has(file) || elsewhere(file) == nullptr) check_file(file);
  }
}

int64_t CheckpointReader::parameter_count() const {
  int64_t count = 0;
  for (const std::string& file : shards_of(manifest_, Part::Model)) {
    if (!has(file) && elsewhere(file) != nullptr) {  // masters are fp32
      return static_cast<int64_t>(parse_shard_index(index(index_name(Part::Model))).total_size / sizeof(float));
    }
    check_is_there(file);
    count += count_elements(directory_ / file);
  }
  return count;
}

std::map<std::string, std::vector<int64_t>> CheckpointReader::shapes() const {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& name : shards_of(manifest_, Part::Model)) {
    if (!has(name) && elsewhere(name) != nullptr) continue;
    check_is_there(name);
    const SafetensorsFile file(directory_ / name);
    for (const TensorEntry& tensor : file.tensors()) shapes[tensor.name] = tensor.shape;
  }
  return shapes;
}

CheckpointState load_checkpoint(const fs::path& checkpoints, int64_t step, CheckpointParts parts) {
  const CheckpointReader reader(checkpoints, step);
  CheckpointState state{reader.record(), {}, {}};
  reader.check_presence(parts == CheckpointParts::All ? std::vector{Part::Model, Part::Optimizer}
                                                      : std::vector{Part::Model});
  state.weights = parts == CheckpointParts::All ? reader.read(Part::Model) : reader.map(Part::Model);
  if (parts == CheckpointParts::All) state.optimizer = reader.read(Part::Optimizer);
  return state;
}

}  // namespace gyre
