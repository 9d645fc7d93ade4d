#include "gyre/exchange/imported_run.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gyre/build/model_identity.h"
#include "gyre/checkpoint/checkpoint.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/data/dataset.h"
#include "gyre/model/settings/llama_settings.h"
#include "gyre/tokenizers/tokenizer.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

Config run_config(const ModelSettings& settings, const std::string& dtype) {
  Config config;
  config.model = settings;
  config.pipeline.stages = std::min(config.pipeline.stages, 2 * settings.layers + 2);
  config.run.precision = dtype == "BF16" ? "bf16" : "fp32";
  return config;
}

}  // namespace

ImportedRun::ImportedRun(const fs::path& out, const ModelSettings& settings, const std::string& dtype,
                         FileSystem& files)
    : files_(files),
      final_(fs::absolute(out).lexically_normal()),
      config_(run_config(settings, dtype)),
      out_(out, ".importing", files),
      run_(out_.path(), files) {}

void ImportedRun::write_weights(const std::vector<OwnTensor>& own, const ReadParameter& read,
                                const std::stop_token& stop) {
  run_.create(config_);
  CheckpointUnderConstruction checkpoint(run_.checkpoints(), 0, files_);
  DeclaredTensors parameters;
  for (const OwnTensor& tensor : own) parameters[tensor.name] = {tensor.shape};
  const auto make = [&](const std::string& name) { return read(name, parameters.at(name).shape); };
  CheckpointRecord record;
  record.seed = static_cast<uint64_t>(config_.run.seed);
  record.model = model_identity(config_);
  checkpoint.commit(record, {write_shard(checkpoint.directory(), Part::Model, {}, parameters, make, files_, stop),
                             write_shard(checkpoint.directory(), Part::Optimizer, {}, {}, {}, files_)});
}

void ImportedRun::write_dtypes(const Provenance& provenance) {
  make_directories(run_.hugging_face(), files_);
  write_new_file(run_.hugging_face() / kProvenanceFile, to_text(provenance), files_);
  sync_directory(run_.hugging_face(), files_);
}

void ImportedRun::write_tokenizer(const TokenizerModel& model, int64_t vocabulary) {
  make_directories(run_.tokenizer(), files_);
  import_tokenizer(model, vocabulary, run_.tokenizer(), files_);
}

void ImportedRun::complete() {
  Config next = config_;
  next.run.init_from = final_.string();
  write_new_file(out_.path() / "train.toml", to_toml(next), files_);
  out_.complete();
}

ImportedTokenizer describe(const TokenizerModel& model, std::vector<std::string> files, const std::string& origin) {
  const auto tokenizer = make_tokenizer(model, origin);
  return {.kind = model.kind,
          .files = std::move(files),
          .vocabulary = tokenizer->vocabulary_size(),
          .end_of_document_text = tokenizer->end_of_document_text(),
          .end_of_document = tokenizer->end_of_document()};
}

int64_t choose_context(const ModelSettings& settings, int64_t asked, const std::string& origin) {
  const bool rotary = settings.own.of_kind(settings.kind).as<LlamaSettings>() != nullptr;
  if (asked == 0) return rotary ? std::min(settings.context, kUsualContext) : settings.context;
  if (asked <= settings.context && (rotary || asked == settings.context)) return asked;
  throw InputError(
      fmt::format("--context is {}, and the model of {} {}", asked, origin,
                  rotary ? fmt::format("takes sequences of up to {} tokens; give no more", settings.context)
                         : fmt::format("has {} positions, which are learned: leave it out", settings.context)));
}

// Without a temporary tensor: a maximum is not a number if one of the values is not.
bool is_finite(const at::Tensor& values) {
  const auto [least, most] = at::aminmax(values);
  return std::isfinite(least.item<float>()) && std::isfinite(most.item<float>());
}

}  // namespace gyre
