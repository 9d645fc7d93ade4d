#include "gyre/data/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <system_error>

#include "gyre/core/cores.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/ordered_workers.h"
#include "gyre/core/text.h"
#include "gyre/data/dataset.h"
#include "gyre/data/text_input.h"
#include "gyre/data/text_sample.h"
#include "gyre/data/token_splits.h"
#include "gyre/tokenizers/tokenizer_model.h"

namespace gyre {
namespace {

// The path of `out` with links resolved and without a slash at its end.
std::filesystem::path resolved(const std::filesystem::path& out) {
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical(out, error);
  if (out.empty() || error) {
    throw InputError(fmt::format("--out '{}' cannot be the name of a directory: {}", out.string(),
                                 error ? error.message() : "it is empty; give a directory to make"));
  }
  if (!std::filesystem::exists(path, error) && std::filesystem::is_symlink(out, error)) {
    throw InputError(fmt::format("{}: is a link to nowhere; is a disk not mounted?", out.string()));
  }
  return path.has_filename() ? path : path.parent_path();
}

// out: resolved. Throws InputError unless it is missing, or is a directory that may be replaced: it holds nothing but
// prepared text.
void check_place(const std::filesystem::path& out, bool overwrite) {
  static const std::set<std::string> kOurs = {kMetaFile, kTokenizerModelFile, kTokenizerJsonFile, kTokenizerConfigFile};
  std::error_code error;
  if (!std::filesystem::exists(out, error)) return;
  if (!std::filesystem::is_directory(out, error)) {
    throw InputError(fmt::format("{}: is not a directory; give --out another name", out.string()));
  }
  if (std::filesystem::equivalent(out, std::filesystem::current_path(), error)) {
    throw InputError(fmt::format("{}: is the current directory; give --out a directory of its own", out.string()));
  }
  if (is_tokenizer_of_run(out)) {
    throw InputError(fmt::format("{}: is the tokenizer of the run in {}; give --out a directory of its own",
                                 out.string(), out.parent_path().string()));
  }
  bool has_data = false;
  for (const auto& entry : entries_of(out, error)) {
    const std::string name = entry.filename().string();
    if (kOurs.count(name) == 0 && !is_shard_of(name, kTrainFile) && !is_shard_of(name, kValFile)) {
      throw InputError(fmt::format("{}: has '{}', which gyre prepare did not make; give --out a directory of its own",
                                   out.string(), name));
    }
    has_data = true;
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", out.string(), error.message()));
  if (has_data && !overwrite) {
    throw InputError(
        fmt::format("{}: has prepared text already, which runs may need; choose another --out, or replace it with "
                    "--overwrite",
                    out.string()));
  }
}

bool is_kind(const std::string& tokenizer) {
  return tokenizer == "byte" || tokenizer == "bpe";
}

void check(const PrepareOptions& options) {
  if (!is_kind(options.tokenizer) && !is_there(options.tokenizer)) {
    throw InputError(fmt::format("--tokenizer {} is unknown, and there is no such file or directory{}",
                                 printable(options.tokenizer), suggestion(options.tokenizer, tokenizer_names())));
  }
  if (is_kind(options.tokenizer) && !options.end_of_document.empty()) {
    throw InputError(fmt::format(
        "--end-of-document is for a tokenizer of your own; {} always has the same token for it: leave it out",
        options.tokenizer));
  }
  constexpr double kMinFraction = 1e-9;  // its inverse counts documents
  if (options.val_fraction != 0 && !(options.val_fraction >= kMinFraction && options.val_fraction < 1)) {
    throw InputError(
        fmt::format("--val-fraction is {}; give 0, or {} or more and less than 1", options.val_fraction, kMinFraction));
  }
  if (options.tokenizer == "bpe" &&
      (options.vocabulary_size < kSmallestVocabulary || options.vocabulary_size > kLargestVocabulary)) {
    throw InputError(fmt::format("--vocab-size is {}; give {} to {}", options.vocabulary_size, kSmallestVocabulary,
                                 kLargestVocabulary));
  }
  if (std::count(options.texts.begin(), options.texts.end(), "-") > 1) {
    throw InputError("- (standard input) is given twice; it can be read once");
  }
  if (options.texts.empty()) throw InputError("no text is given");
  const std::vector<std::string> formats = {"auto", "text", "jsonl"};
  if (std::find(formats.begin(), formats.end(), options.format) == formats.end()) {
    throw InputError(fmt::format("--format {} is unknown{}", options.format, suggestion(options.format, formats)));
  }
  if (options.shard_tokens < kFewestOfAShard || options.shard_tokens > TokenFileWriter::kMostTokens) {
    throw InputError(fmt::format("--shard-tokens is {}; give {} to {}", options.shard_tokens, kFewestOfAShard,
                                 TokenFileWriter::kMostTokens));
  }
  if (options.threads < 0 || options.threads > kMostPrepareThreads) {
    throw InputError(
        fmt::format("--threads is {}; give 1 to {}, or 0 for one on each core", options.threads, kMostPrepareThreads));
  }
  if (options.seed < 0) throw InputError(fmt::format("--seed is {}; give 0 or more", options.seed));
  constexpr size_t kMaxSeparatorBytes = 4096;
  if (options.separator.size() > kMaxSeparatorBytes) {
    throw InputError(
        fmt::format("--separator has {} bytes; give {} at most", options.separator.size(), kMaxSeparatorBytes));
  }
}

bool is_jsonl(const std::string& path, const std::string& format) {
  if (format != "auto") return format == "jsonl";
  std::filesystem::path name = std::filesystem::path(path).filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  return name.extension() == ".jsonl" || name.extension() == ".json" || name.extension() == ".ndjson";
}

// The texts, and what all passes over them share.
class Texts {
 public:
  Texts(const PrepareOptions& options, const std::filesystem::path& directory) : options_(options) {
    TextInput::Source source{options.input_descriptor, {}, options.files};
    for (const std::string& path : options.texts) {
      const TextLayout layout{path, is_jsonl(path, options.format), options.field, options.separator};
      has_jsonl_ = has_jsonl_ || layout.json_lines;
      has_plain_ = has_plain_ || !layout.json_lines;
      if (options.tokenizer == "bpe") source.spool = directory / fmt::format("input-{}", inputs_.size());
      inputs_.push_back(std::make_unique<TextInput>(path, layout, source, options.stop));
      // The length of a text in a pipe is not known.
      if (inputs_.back()->bytes() == 0) all_known_ = false;
      total_ += inputs_.back()->bytes();
    }
    if (!options.separator.empty() && !has_plain_)
      throw InputError("--separator is for plain text, and all texts are jsonl; leave it out");
    if (options.field != TextLayout().field && !has_jsonl_)
      throw InputError("--field is for jsonl, and all texts are plain; leave it out");
  }

  bool have_many_documents() const {
    return has_jsonl_ || !options_.separator.empty() ||
           static_cast<double>(inputs_.size()) * options_.val_fraction >= 1;
  }
  const std::vector<std::unique_ptr<TextInput>>& inputs() const { return inputs_; }
  void read(const TextInput& input, const char* doing, const std::function<void(TextChunk)>& visit) {
    if (&input == inputs_.front().get()) before_ = 0;
    int64_t taken = 0;
    input.read([&](TextChunk chunk, int64_t so_far) {
      taken = so_far;
      visit(std::move(chunk));
      if (options_.progress) options_.progress({doing, before_ + taken, all_known_ ? total_ : 0});
    });
    before_ += taken;
  }

 private:
  const PrepareOptions& options_;
  std::vector<std::unique_ptr<TextInput>> inputs_;
  bool has_jsonl_ = false, has_plain_ = false, all_known_ = true;
  int64_t total_ = 0;
  int64_t before_ = 0;  // bytes of the texts that this pass has finished
};

// The requested tokenizer: byte, the user's own, or one trained on the texts.
TokenizerModel find_tokenizer(const PrepareOptions& options, Texts& texts) {
  if (!is_kind(options.tokenizer)) return read_tokenizer(options.tokenizer, options.end_of_document);
  TokenizerModel model;
  model.kind = options.tokenizer;
  if (options.tokenizer == "byte") return model;
  int64_t total = 0;  // for jsonl, including what surrounds the text
  for (const auto& input : texts.inputs()) {
    texts.read(*input, "measuring", [&](const TextChunk& chunk) { total += static_cast<int64_t>(chunk.text.size()); });
  }
  if (total == 0) throw InputError("the text is empty; there is nothing to learn a vocabulary from");
  const int64_t wanted = sample_bytes(options.vocabulary_size);
  TextSample sample(total, wanted);
  for (const auto& input : texts.inputs()) {
    texts.read(*input, "sampling", [&](const TextChunk& chunk) {
      sample.begin_chunk(chunk.text.size());
      for_each_part(chunk, input->layout(), [&](const TextPart& part) { sample.add(part.text); });
    });
  }
  model.content = train_bpe_tokenizer(sample.lines(), options.vocabulary_size, total > wanted);
  return model;
}

// The tokens of a chunk, by document or part of a document.
struct EncodedChunk {
  struct Part {
    size_t tokens = 0;
    int64_t bytes = 0;
    bool ends_document = false;
  };
  std::vector<int32_t> tokens;
  std::vector<Part> parts;
};

EncodedChunk encode(const TextChunk& chunk, const TextLayout& layout, const Tokenizer& tokenizer) {
  EncodedChunk encoded;
  for_each_part(chunk, layout, [&](const TextPart& part) {
    const size_t before = encoded.tokens.size();
    part.begins_document ? tokenizer.encode(part.text, encoded.tokens)
                         : tokenizer.encode_rest(part.text, encoded.tokens);
    encoded.parts.push_back(
        {encoded.tokens.size() - before, static_cast<int64_t>(part.text.size()), part.ends_document});
  });
  return encoded;
}

// Appends the documents of all texts to the splits, except empty ones. Returns the bytes of text.
int64_t add_documents(Texts& texts, const Tokenizer& tokenizer, int threads, TokenSplits& splits) {
  int64_t all_bytes = 0;
  const TextLayout* layout = nullptr;     // of the text that is being read
  int64_t bytes = 0, document_bytes = 0;  // of that text, and of its document
  // One set of threads for all texts: to start them costs more than to encode a short text.
  OrderedWorkers<TextChunk, EncodedChunk> workers(
      threads, [&](const TextChunk& chunk) { return encode(chunk, *layout, tokenizer); },
      [&](const EncodedChunk& chunk) {
        size_t at = 0;
        for (const EncodedChunk::Part& part : chunk.parts) {
          splits.append(std::span(chunk.tokens).subspan(at, part.tokens));
          at += part.tokens;
          document_bytes += part.bytes;
          bytes += part.bytes;
          if (!part.ends_document) continue;
          if (document_bytes > 0) splits.end_document(tokenizer.end_of_document());
          document_bytes = 0;
        }
      });
  for (const auto& input : texts.inputs()) {
    input->cut_by([&](std::string_view text) { return tokenizer.cut(text); });
    layout = &input->layout();
    bytes = document_bytes = 0;
    texts.read(*input, "encoding", [&](TextChunk chunk) { workers.put(std::move(chunk)); });
    workers.finish();
    if (bytes == 0) throw InputError(fmt::format("{}: has no text", layout->name));
    all_bytes += bytes;
  }
  return all_bytes;
}

int thread_count(const PrepareOptions& options) {
  return options.threads > 0 ? options.threads : usable_core_count();
}

}  // namespace

PrepareResult prepare(const PrepareOptions& options) {
  check(options);
  const auto out = resolved(options.out);
  check_place(out, options.overwrite);
  DirectoryUnderConstruction directory(name_beside(out, "", ".preparing"), *options.files);

  auto texts = std::make_unique<Texts>(options, directory.path());
  DatasetMeta meta;
  const TokenizerModel model = find_tokenizer(options, *texts);
  const auto tokenizer = make_tokenizer(model, options.tokenizer);
  write_tokenizer(model, directory.path(), meta, *options.files);

  meta.vocabulary = tokenizer->vocabulary_size();
  TokenSplits splits(directory.path(), meta.vocabulary,
                     {options.val_fraction, texts->have_many_documents(), options.seed, options.shard_tokens},
                     *options.files);
  meta.text_bytes = add_documents(*texts, *tokenizer, thread_count(options), splits);
  texts.reset();  // also removes the copies of pipes
  splits.finish();
  meta.train_tokens = splits.train_tokens();
  meta.val_tokens = splits.val_tokens();
  meta.documents = splits.documents();
  meta.checksums.merge(splits.close_train());
  meta.checksums.merge(splits.close_val());
  write_new_file(directory.path() / kMetaFile, meta.to_json(), *options.files);
  directory.complete(out);
  const std::string end =
      fmt::format("{} ({})", printable(tokenizer->end_of_document_text()), tokenizer->end_of_document());
  return {meta.vocabulary, end, meta.documents, meta.text_bytes, meta.train_tokens, meta.val_tokens};
}

}  // namespace gyre
