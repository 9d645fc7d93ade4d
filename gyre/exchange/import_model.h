// gyre import: turns a model of Hugging Face's transformers or of llm.c into a run that has made no update yet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/file_system.h"

namespace gyre {

struct ImportOptions {
  std::filesystem::path from;  // a directory with config.json and safetensors, or a model file of llm.c
  std::filesystem::path out;
  // For a model of llm.c, which comes without one: the run's tokenizer, as for gyre prepare --tokenizer. Empty: none.
  std::filesystem::path tokenizer = {};
  // [model] context of the run's configuration. 0: the model's own, but at most kUsualContext of rotary positions.
  int64_t context = 0;
  std::stop_token stop = {};  // a stopped call removes what it wrote
  FileSystem* files = &system_files();
};
inline constexpr int64_t kUsualContext = 2048;

struct ImportedTokenizer {
  std::string kind;
  std::vector<std::string> files;    // that it was read from
  int64_t vocabulary = 0;            // the model may have more tokens
  std::string end_of_document_text;  // of the token that ends documents
  int32_t end_of_document = 0;
};

struct ImportResult {
  std::string model_type;  // as transformers calls the family; of llm.c's models "gpt2"
  std::string dtype;       // of all tensors, "F32"; "mixed"
  int64_t parameters = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;
  std::vector<std::string> left_out;  // tensors that are no weights of the model
  // Special tokens, such as BERT's [CLS], that no tokenizer gives: they are taken to be the last of the vocabulary.
  std::map<std::string, int64_t> assumed_tokens;
  std::optional<ImportedTokenizer> tokenizer;  // empty if there is none that gyre reads
  std::string tokenizer_fault;                 // why there is none although its files are there
};

// The run has the weights as its checkpoint of step 0; config.toml with the model's shape, its precision, and defaults
// otherwise; train.toml, the same for a run that begins with these weights; of a model of transformers what export
// gives back (hugging_face/); and the tokenizer, if gyre reads it. Holds one parameter at a time. If anything goes
// wrong, nothing is left at `out`. Throws InputError for what cannot be read, is of another architecture, or does not
// fit together, and Stopped (core/stopped.h).
ImportResult import_model(const ImportOptions& options);

}  // namespace gyre
