// Byte-pair encoding by the sentencepiece library, set up so that decoding gives the text back to the byte: no
// normalisation, no invented or removed blanks, bytes for what the vocabulary lacks, line ends as a piece of their own.
#include "gyre/data/bpe/module.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>

namespace gyre::bpe {
namespace {

class BpeTokenizer final : public Tokenizer {
 public:
  // Whether it is a model that documents can be ended with. The library throws at some that are damaged.
  bool load(const std::string& model) try {
    return processor_.LoadFromSerializedProto(model).ok() && processor_.eos_id() >= 0;
  } catch (const std::exception&) {
    return false;
  }

  int64_t vocabulary_size() const override { return processor_.GetPieceSize(); }
  int32_t end_of_document() const override { return processor_.eos_id(); }
  // Line by line: no piece crosses a line end, so the tokens are the same, and the library's work per call stays small.
  void encode(std::string_view text, std::vector<int32_t>& tokens) const override {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end == std::string_view::npos ? text.size() : end + 1);
      const std::vector<int> ids = processor_.EncodeAsIds({line.data(), line.size()});
      tokens.insert(tokens.end(), ids.begin(), ids.end());
      text.remove_prefix(line.size());
    }
  }
  std::string decode(std::span<const int32_t> tokens) const override {
    return processor_.DecodeIds(std::vector<int>(tokens.begin(), tokens.end()));
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

// Hands the lines to the trainer one by one.
class LineIterator final : public sentencepiece::SentenceIterator {
 public:
  explicit LineIterator(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return next_ >= lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t next_ = 0;
};

Tokenizer* load(const std::string& model) {
  auto tokenizer = std::make_unique<BpeTokenizer>();
  return tokenizer->load(model) ? tokenizer.release() : nullptr;
}

std::string train(const std::vector<std::string>& lines, int64_t vocabulary_size, std::string& model) {
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocabulary_size)},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9999"},
      {"user_defined_symbols", "\n"},
      {"unk_id", "0"},
      {"eos_id", "1"},
      {"bos_id", "-1"},
      {"pad_id", "-1"},
      {"max_sentence_length", "65536"},
      {"shuffle_input_sentence", "false"},
      {"num_threads", "1"},
      {"minloglevel", "3"},  // errors come back as a status; the library's own log stays silent
  };
  LineIterator iterator(lines);
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &model);
  return status.ok() ? "" : status.ToString();
}

}  // namespace
}  // namespace gyre::bpe

extern "C" __attribute__((visibility("default"))) const gyre::bpe::Module gyre_bpe_module;
const gyre::bpe::Module gyre_bpe_module = {gyre::bpe::load, gyre::bpe::train};
