#include "gyre/exchange/import_llmc_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/exchange/imported_run.h"
#include "gyre/exchange/llm_c/model_file.h"
#include "gyre/exchange/own_tensors.h"
#include "gyre/tensors/shape.h"
#include "gyre/tokenizers/tokenizer_model.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// A model file, mapped into memory.
class LlmcModel {
 public:
  explicit LlmcModel(const fs::path& path) : origin_(path.string()), file_(path), header_(read_header()) {
    for (LlmcTensor& tensor : llmc_tensors(header_)) tensors_.emplace(tensor.ours, std::move(tensor));
  }
  const LlmcHeader& header() const { return header_; }

  // The parameter, in fp32.
  at::Tensor read(const std::string& name, const std::vector<int64_t>& shape) const {
    const LlmcTensor& tensor = tensors_.at(name);
    assert(tensor.shape == shape);
    // libtorch has no read-only tensors. All offsets are multiples of a number's bytes.
    auto* const data = const_cast<std::byte*>(file_.bytes().data()) + tensor.offset;  // NOLINT
    const auto type = header_.type == LlmcType::Fp32 ? at::kFloat : at::kBFloat16;
    const at::Tensor parameter = at::from_blob(data, shape, type).to(at::kFloat);
    if (!is_finite(parameter)) throw InputError(fmt::format("{}: '{}' {}", origin_, name, kNotFinite));
    return parameter;
  }

 private:
  LlmcHeader read_header() const {
    const auto bytes = file_.bytes();
    return parse_llmc_header(bytes.first(std::min(bytes.size(), kLlmcHeaderBytes)), bytes.size(), origin_);
  }

  std::string origin_;
  MappedFile file_;
  LlmcHeader header_;
  std::map<std::string, LlmcTensor> tensors_;  // by our names
};

// All tensors have one type; they are named as transformers would name them.
Provenance dtypes_of(const ModelSettings& settings, const std::vector<OwnTensor>& own, const std::string& dtype) {
  Provenance provenance;
  for (const Counterpart& tensor : correspondence(family_of(settings), settings.layers, own)) {
    if (tensor.use == TensorPair::Use::Own) provenance.dtypes[tensor.theirs] = dtype;
  }
  return provenance;
}

std::optional<TokenizerModel> asked_tokenizer(const fs::path& path, const ModelSettings& settings,
                                              ImportResult& result) {
  if (path.empty()) return std::nullopt;
  TokenizerModel found = read_tokenizer(path);
  result.tokenizer = describe(found, {path.string()}, path.string());
  if (result.tokenizer->vocabulary > settings.vocabulary) {
    throw InputError(
        fmt::format("--tokenizer {} has {} tokens, and the model has {}; give the one that it was trained with",
                    printable(path.string()), result.tokenizer->vocabulary, settings.vocabulary));
  }
  return found;
}

}  // namespace

ImportResult import_llmc_model(const ImportOptions& options) {
  const LlmcModel model(options.from);
  ModelSettings settings = model_of(model.header());
  settings.context = choose_context(settings, options.context, options.from.string());
  ImportResult result;
  const auto tokenizer = asked_tokenizer(options.tokenizer, settings, result);

  const std::vector<OwnTensor> own = own_tensors(settings);
  result.model_type = "gpt2";
  result.dtype = model.header().type == LlmcType::Fp32 ? "F32" : "BF16";
  ImportedRun run(options.out, settings, result.dtype, *options.files);
  const auto read = [&](const auto& name, const auto& shape) { return model.read(name, shape); };
  run.write_weights(own, read, options.stop);
  run.write_dtypes(dtypes_of(settings, own, result.dtype));
  if (tokenizer) run.write_tokenizer(*tokenizer, result.tokenizer->vocabulary);
  run.complete();
  result.vocabulary = settings.vocabulary;
  result.context = settings.context;
  for (const OwnTensor& tensor : own) result.parameters += numel(tensor.shape);
  return result;
}

}  // namespace gyre
