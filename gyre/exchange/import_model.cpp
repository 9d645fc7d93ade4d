#include "gyre/exchange/import_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "gyre/checkpoint/safetensors.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/core/wrong_file.h"
#include "gyre/exchange/hugging_face/config_json.h"
#include "gyre/exchange/hugging_face/correspondence.h"
#include "gyre/exchange/hugging_face/provenance.h"
#include "gyre/exchange/import_llmc_model.h"
#include "gyre/exchange/imported_run.h"
#include "gyre/exchange/llm_c/model_file.h"
#include "gyre/exchange/model_files.h"
#include "gyre/exchange/own_tensors.h"
#include "gyre/model/settings/special_tokens.h"
#include "gyre/tensors/shape.h"
#include "gyre/tokenizers/tokenizer_model.h"
#include "gyre/train/run_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return shape.empty() ? "no dimension" : join(sizes, " x ");
}

// A tensor of a file, and which rows of a parameter it is.
struct Source {
  const TensorFile* file;
  const TensorEntry* tensor;
  const Counterpart* counterpart;
};

// The tensors of the files and the counterpart that each is. Throws InputError unless they are the tensors of the
// model. Refers to its arguments.
class MatchedTensors {
 public:
  MatchedTensors(const Family& family, const std::vector<TensorFile>& files,
                 const std::vector<Counterpart>& counterparts) {
    std::map<std::string, const Counterpart*> wanted;
    std::set<std::string> known;
    for (const Counterpart& counterpart : counterparts) {
      wanted[counterpart.theirs] = &counterpart;
      known.insert(counterpart.theirs);
    }
    for (const TensorFile& file : files) {
      for (const TensorEntry& tensor : file.tensors) take(family, file, tensor, known, wanted);
    }
    std::vector<std::string> missing;
    for (const auto& [name, counterpart] : wanted) {
      if (counterpart->use == TensorPair::Use::Own) missing.push_back(name);
    }
    if (missing.empty()) return;
    throw InputError(fmt::format("{}: lacks '{}'{}, which a {} model with this config.json has",
                                 files.front().path.parent_path().string(), missing.front(),
                                 missing.size() > 1 ? fmt::format(" and {} more tensors", missing.size() - 1) : "",
                                 family.model_type));
  }

  // Of a parameter: the tensors that hold it, then the copies of them.
  const std::vector<Source>& sources(const std::string& ours) const { return sources_.at(ours); }
  const std::vector<std::string>& left_out() const { return left_out_; }
  // The types by the tensors' names in the family's table.
  const std::map<std::string, std::string>& dtypes() const { return dtypes_; }

 private:
  void take(const Family& family, const TensorFile& file, const TensorEntry& tensor, const std::set<std::string>& known,
            std::map<std::string, const Counterpart*>& wanted) {
    const std::string name = canonical_name(family, known, tensor.name);
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      if (dtypes_.count(name) > 0) refuse(file, tensor, "is there twice, under two names");
      if (!is_buffer(family, tensor.name)) {
        refuse(file, tensor, fmt::format("is not a tensor of a {} model with this config.json", family.model_type));
      }
      left_out_.push_back(tensor.name);
      return;
    }
    const Counterpart& counterpart = *found->second;
    if (tensor.shape != counterpart.shape) {
      refuse(file, tensor,
             fmt::format("has shape {}, and by config.json it should be {}", shape_text(tensor.shape),
                         shape_text(counterpart.shape)));
    }
    if (tensor.type != "F32" && tensor.type != "BF16" && tensor.type != "F16") {
      refuse(file, tensor, fmt::format("has the type {}; F32, BF16 and F16 are read", tensor.type));
    }
    std::vector<Source>& sources = sources_[counterpart.ours];
    const bool is_copy = counterpart.use != TensorPair::Use::Own;
    sources.insert(is_copy ? sources.end() : sources.begin(), {&file, &tensor, &counterpart});
    dtypes_[name] = tensor.type;
    wanted.erase(found);
  }
  [[noreturn]] static void refuse(const TensorFile& file, const TensorEntry& tensor, const std::string& what) {
    throw InputError(fmt::format("{}: '{}' {}", file.path.string(), printable(tensor.name), what));
  }

  std::map<std::string, std::vector<Source>> sources_;  // by parameter
  std::vector<std::string> left_out_;
  std::map<std::string, std::string> dtypes_;
};

// Makes parameters, one at a time, from the tensors where they lie in their files.
class ParameterReader {
 public:
  explicit ParameterReader(const MatchedTensors& matched) : matched_(matched) {}

  // In fp32. Throws InputError for values that are not finite, and for copies that differ.
  at::Tensor read(const std::string& name, const std::vector<int64_t>& shape) {
    at::Tensor parameter = at::empty(shape, at::kFloat);
    for (const Source& source : matched_.sources(name)) {
      const Counterpart& counterpart = *source.counterpart;
      const at::Tensor theirs = opened(*source.file).view(*source.tensor);
      const at::Tensor value = counterpart.transposed ? theirs.t() : theirs;
      const at::Tensor rows = parameter.narrow(0, counterpart.first_row, counterpart.rows);
      if (counterpart.use == TensorPair::Use::Own) {
        rows.copy_(value);
        if (!is_finite(rows)) refuse(source, kNotFinite);
      } else if (!rows.equal(value.to(at::kFloat))) {
        refuse(source, "differs from the matrix that it is tied to by config.json");
      }
    }
    return parameter;
  }

 private:
  const SafetensorsFile& opened(const TensorFile& file) {
    const auto [found, is_new] = files_.try_emplace(file.path, file.path);
    if (is_new && found->second.tensors() != file.tensors) {
      throw InputError(file.path.string() + ": was changed while it was read");
    }
    return found->second;
  }
  [[noreturn]] static void refuse(const Source& source, const std::string& what) {
    throw InputError(fmt::format("{}: '{}' {}", source.file->path.string(), printable(source.tensor->name), what));
  }

  const MatchedTensors& matched_;
  std::map<fs::path, SafetensorsFile> files_;
};

std::string one_dtype(const std::map<std::string, std::string>& dtypes) {
  std::set<std::string> types;
  for (const auto& [name, type] : dtypes) types.insert(type);
  return types.size() == 1 ? *types.begin() : "mixed";
}

// A tokenizer that gyre cannot read does not stop the import: its files are copied, and the run has none. The same
// holds for one with more tokens than the model has embeddings, for example since a padding token was added later, and
// for a vocabulary of another model type than gyre would take it for: Qwen2 splits words in another way than GPT-2.
std::optional<TokenizerModel> find_tokenizer(const fs::path& from, const Family& family, int64_t vocabulary,
                                             ImportResult& result) {
  for (const TokenizerForm& form : tokenizer_forms()) {
    for (const char* name : form.files) has_file(from / name);
  }
  for (const std::string& name : side_files()) has_file(from / name);  // some are read with the tokenizer
  const TokenizerForm* const form = tokenizer_form_in(from);
  if (form == nullptr) return std::nullopt;
  const std::string taken_for = form->taken_for;
  if (!taken_for.empty() && taken_for != family.model_type) {
    result.tokenizer_fault = fmt::format("{} of a {} model is not read; save the tokenizer as {}", form->files.front(),
                                         family.model_type, kTokenizerJsonFile);
    return std::nullopt;
  }
  TokenizerModel found;
  ImportedTokenizer imported;
  try {
    found = read_tokenizer(from);
    imported = describe(found, {form->files.begin(), form->files.end()}, (from / form->files.front()).string());
  } catch (const InputError& error) {
    result.tokenizer_fault = error.what();
    return std::nullopt;
  }
  if (imported.vocabulary > vocabulary) {
    result.tokenizer_fault = fmt::format("it has {} tokens, and the model has {}", imported.vocabulary, vocabulary);
    return std::nullopt;
  }
  result.tokenizer = std::move(imported);
  return found;
}

// What the model came with, for its export.
void write_origin(const RunDirectory& run, const fs::path& from, const std::string& config_json, FileSystem& files) {
  write_new_file(run.hugging_face() / "config.json", config_json, files);
  for (const std::string& name : side_files()) {
    if (has_file(from / name))
      write_new_file(run.hugging_face() / name, read_file(from / name, kMostOfTokenizer), files);
  }
  sync_directory(run.hugging_face(), files);
}

}  // namespace

ImportResult import_model(const ImportOptions& options) {
  if (is_llmc_model(options.from)) return import_llmc_model(options);
  if (!options.tokenizer.empty()) {
    throw InputError(
        "--tokenizer is for models of llm.c; the tokenizer of a model of transformers is read from its directory");
  }
  FileSystem& files = *options.files;
  refuse_file(options.from, "the model's directory", "config.json");
  const fs::path config_path = options.from / "config.json";
  if (!has_file(config_path)) {
    throw InputError(
        fmt::format("{}: no model is here: no config.json of transformers, and this is no model file of llm.c",
                    options.from.string()));
  }
  const std::string config_json = read_file(config_path);
  DescribedModel described = parse_config_json(config_json, config_path.string());
  const Family& family = *described.family;
  ModelSettings& settings = described.settings;
  settings.context = choose_context(settings, options.context, config_path.string());

  const std::vector<TensorFile> tensor_files = model_files(options.from);
  std::set<std::string> names;
  for (const TensorFile& file : tensor_files) {
    for (const TensorEntry& tensor : file.tensors) names.insert(tensor.name);
  }
  if (family.read_names != nullptr) family.read_names(names, settings);
  ImportResult result;
  if (has_open_tokens(settings)) take_tokens(special_tokens(options.from), settings);
  if (has_open_tokens(settings)) result.assumed_tokens = used_tokens(settings);
  const std::vector<OwnTensor> own = own_tensors(settings);
  const std::vector<Counterpart> counterparts = correspondence(family, settings.layers, own);
  const MatchedTensors matched(family, tensor_files, counterparts);
  const std::string dtype = one_dtype(matched.dtypes());
  const auto tokenizer = find_tokenizer(options.from, family, settings.vocabulary, result);

  ImportedRun run(options.out, settings, dtype, files);  // refuses a taken name before the weights are read
  ParameterReader reader(matched);
  const auto read = [&](const auto& name, const auto& shape) { return reader.read(name, shape); };
  run.write_weights(own, read, options.stop);
  run.write_dtypes({matched.dtypes()});
  write_origin(run.directory(), options.from, config_json, files);
  if (tokenizer) run.write_tokenizer(*tokenizer, result.tokenizer->vocabulary);
  run.complete();
  result.model_type = family.model_type;
  result.dtype = dtype;
  result.vocabulary = settings.vocabulary;
  result.context = settings.context;
  result.left_out = matched.left_out();
  for (const OwnTensor& tensor : own) result.parameters += numel(tensor.shape);
  return result;
}

}  // namespace gyre
