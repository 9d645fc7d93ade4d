#include "gyre/exchange/export_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>
#include <set>
#include <utility>

#include "gyre/checkpoint/format/shards.h"
#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/stopped.h"
#include "gyre/core/text.h"
#include "gyre/data/dataset.h"
#include "gyre/data/hugging_face_tokenizer.h"
#include "gyre/exchange/export_llmc_model.h"
#include "gyre/exchange/exported_weights.h"
#include "gyre/exchange/hugging_face/config_json.h"
#include "gyre/exchange/hugging_face/correspondence.h"
#include "gyre/exchange/model_files.h"
#include "gyre/exchange/new_directory.h"
#include "gyre/exchange/own_tensors.h"
#include "gyre/model/settings/special_tokens.h"
#include "gyre/tensors/shape.h"
#include "gyre/tokenizers/hugging_face_files.h"
#include "gyre/tokenizers/tokenizer_model.h"
#include "gyre/train/chosen_checkpoint.h"
#include "gyre/train/run_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.json";

// The tensors that go into one file.
using TensorGroup = std::vector<const Counterpart*>;

int64_t bytes_of(const Counterpart& tensor, const ExportTypes& types) {
  return numel(tensor.shape) * static_cast<int64_t>(c10::elementSize(types.of(tensor.theirs).type));
}

std::vector<TensorGroup> in_files(const std::vector<Counterpart>& counterparts, const ExportTypes& types,
                                  int64_t max_bytes) {
  std::vector<TensorGroup> groups(1);
  int64_t bytes = 0;
  for (const Counterpart& tensor : counterparts) {
    if (tensor.use == TensorPair::Use::ReadCopy) continue;
    const int64_t more = bytes_of(tensor, types);
    if (!groups.back().empty() && bytes + more > max_bytes) {
      groups.emplace_back();
      bytes = 0;
    }
    groups.back().push_back(&tensor);
    bytes += more;
  }
  return groups;
}

at::Tensor value_of(const Counterpart& tensor, const NamedTensors& weights, const ExportType& dtype) {
  if (tensor.ours.empty()) return at::zeros(tensor.shape, dtype.type);
  const at::Tensor ours = weights.at(tensor.ours).narrow(0, tensor.first_row, tensor.rows);
  const at::Tensor written = in_type(ours, dtype, tensor.theirs);
  return tensor.transposed ? written.t() : written;
}

void write_tensors(const fs::path& directory, const std::vector<TensorGroup>& groups, const NamedTensors& weights,
                   const ExportTypes& types, FileSystem& files, const std::stop_token& stop) {
  ShardIndex index;
  for (size_t number = 0; number < groups.size(); ++number) {
    const std::string name = shard_name(Part::Model, {static_cast<int>(number) + 1, static_cast<int>(groups.size())});
    DeclaredTensors declared;
    for (const Counterpart* tensor : groups[number]) {
      declared[tensor->theirs] = {tensor->shape, types.of(tensor->theirs).type};
      index.weight_map[tensor->theirs] = name;
      index.total_size += static_cast<uint64_t>(bytes_of(*tensor, types));
    }
    // Some readers refuse a file without this entry.
    SafetensorsWriter writer(directory / name, declared, {{"format", "pt"}}, files);
    for (const Counterpart* tensor : groups[number]) {
      throw_if_stopped(stop);
      writer.write(value_of(*tensor, weights, types.of(tensor->theirs)));
    }
    writer.close();
  }
  if (groups.size() > 1) write_new_file(directory / index_name(Part::Model), to_text(index), files);
}

// The run's tokenizer, if it has one.
std::optional<TokenizerModel> tokenizer_of(const RunDirectory& run) {
  if (!is_there(run.tokenizer() / kMetaFile)) return std::nullopt;
  if (DatasetMeta::load(run.tokenizer()).tokenizer == kNoTokenizer) return std::nullopt;
  return load_tokenizer_model(run.tokenizer());
}

int32_t end_of_document(const TokenizerModel& model, const fs::path& origin) {
  return make_tokenizer(model, origin.string())->end_of_document();
}

// Whether the tokenizer is the one that the model came with, in any form, and ends documents with the same token.
bool is_imported(const TokenizerModel& own, const RunDirectory& run) {
  const fs::path place = run.hugging_face(), file = place / TokenizerModel::file_of(own.kind);
  try {
    const TokenizerModel imported = read_tokenizer(is_there(file) ? file : place);
    if (own.content != imported.content) {
      if (hugging_face_files(own, run.tokenizer().string()).tokenizer != imported.content) return false;
    } else if (own.config == imported.config && own.end_of_document.empty()) {
      return true;
    }
    return end_of_document(own, run.tokenizer()) == end_of_document(imported, place);
  } catch (const InputError&) {  // none was imported, or one that gyre cannot read
    return false;
  }
}

// What the run has instead of the special tokens that the model came with. Tokens that came without a tokenizer are
// taken for those of the model's own.
std::optional<OwnTokens> own_tokens(const RunDirectory& run) {
  const auto own = tokenizer_of(run);
  const bool was_imported = is_there(run.hugging_face() / kConfigFile);
  if (!own) return was_imported ? std::nullopt : std::optional(OwnTokens{});
  if (was_imported && is_imported(*own, run)) return std::nullopt;
  return OwnTokens{end_of_document(*own, run.tokenizer())};
}

// Writes the model's side files as they were imported or, if the run has another tokenizer by now, that one: settings
// for generation name special tokens too. Returns the files' names.
std::vector<std::string> write_side_files(const RunDirectory& run, const std::optional<OwnTokens>& own,
                                          const fs::path& out, FileSystem& files) {
  if (own && own->end_of_document) write_hugging_face_tokenizer(run.root(), out, files);
  for (const std::string& name : side_files()) {
    if (own || !is_there(run.hugging_face() / name)) continue;
    write_new_file(out / name, read_file(run.hugging_face() / name, kMostOfTokenizer), files);
  }
  std::vector<std::string> written;
  for (const std::string& name : side_files()) {
    if (is_there(out / name)) written.push_back(name);
  }
  return written;
}

// Exchanges rows of the embedding and of the head so that the model has its special tokens where the tokenizer that was
// written has them. They differ if they were numbered after the tokenizer's vocabulary, or given by hand.
void move_special_tokens(const fs::path& written, const ModelSettings& settings, NamedTensors& weights) {
  const auto used = used_tokens(settings);
  if (used.empty()) return;
  const TokenNumbers tokenizer = special_tokens(written);
  for (const auto& [token, number] : used) {
    if (tokenizer.count(token) == 0 || tokenizer.at(token) >= settings.vocabulary) return;
  }
  std::vector<int64_t> row(static_cast<size_t>(settings.vocabulary));  // [row to write] = row that the model has
  std::iota(row.begin(), row.end(), 0);
  for (const auto& [token, number] : used) {
    std::iter_swap(std::ranges::find(row, number), row.begin() + tokenizer.at(token));
  }
  if (std::ranges::is_sorted(row)) return;
  for (auto& [name, weight] : weights) {
    if (!name.starts_with("embedding.token.") && !name.starts_with("head.output.")) continue;
    weight = weight.index_select(0, at::tensor(row));
  }
}

// The settings with the sizes that a configuration may leave open, as the tensors have them.
ModelSettings with_all_sizes(const ModelSettings& settings, const std::vector<OwnTensor>& own) {
  ModelSettings full = settings;
  for (const OwnTensor& tensor : own) {
    if (tensor.name == "blocks.0.mlp.out.weight") full.mlp_width = tensor.shape.back();
  }
  return full;
}

ExportResult export_to_transformers(const ExportOptions& options, const RunDirectory& run, const Config& config) {
  FileSystem& files = *options.files;
  std::optional<std::string> earlier;
  if (is_there(run.hugging_face() / kConfigFile)) earlier = read_file(run.hugging_face() / kConfigFile);
  const std::string came_as = earlier ? model_type_of(*earlier) : "";
  const Family& family = family_of(config.model, came_as);
  const int64_t chosen = choose_checkpoint(run, options.step);
  NewDirectory out(options.out, ".exporting", files);
  auto [step, weights] = chosen_weights(options, run, config, chosen);
  const ExportTypes types(options.dtype, run, step);
  const std::vector<OwnTensor> own = own_tensors(config.model);
  const std::vector<Counterpart> counterparts = correspondence(family, config.model.layers, own);
  const auto groups = in_files(counterparts, types, options.shard_bytes);

  ExportResult result{
      .model_type = family.model_type, .step = step, .files = static_cast<int64_t>(groups.size()), .side_files = {}};
  const std::optional<OwnTokens> tokens = own_tokens(run);
  write_new_file(out.path() / kConfigFile,
                 to_config_json(family, with_all_sizes(config.model, own), types.common().in_config, earlier, tokens),
                 files);
  result.side_files = write_side_files(run, tokens, out.path(), files);
  move_special_tokens(out.path(), config.model, weights);
  write_tensors(out.path(), groups, weights, types, files, options.stop);
  out.complete();
  for (const OwnTensor& tensor : own) result.parameters += weights.at(tensor.name).numel();
  return result;
}

void refuse_among_checkpoints(const fs::path& out) {
  const fs::path parent = fs::absolute(out / "").lexically_normal().parent_path().parent_path();
  const RunDirectory around(parent.parent_path());
  if (parent != around.checkpoints() || !is_there(around.checkpoints_marker())) return;
  throw InputError(fmt::format("{}: is among the checkpoints of a run; choose another --out", out.string()));
}

}  // namespace

ExportResult export_model(const ExportOptions& options) {
  const RunDirectory run(options.run);
  run.refuse_parts();
  const Config config = run.load_config_of_model();
  refuse_among_checkpoints(options.out);
  return options.format == ExportFormat::LlmC ? export_llmc_model(options, run, config)
                                              : export_to_transformers(options, run, config);
}

}  // namespace gyre
