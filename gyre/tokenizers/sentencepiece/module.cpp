// The sentencepiece module. It trains byte-pair encoding with settings that make decoding restore the text to the byte:
// no normalisation, no added or removed blanks, bytes for what the vocabulary lacks, a piece for the line end.
#include "gyre/tokenizers/sentencepiece/module.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <memory>
#include <unordered_map>

namespace gyre::sentencepiece_module {
namespace {

class LibraryProcessor final : public Processor {
 public:
  // Returns whether it is a model. The library throws for some damaged models.
  bool load(const std::string& model) try {
    return processor_.LoadFromSerializedProto(model).ok();
  } catch (const std::exception&) {
    return false;
  }

  int64_t pieces() const override { return processor_.GetPieceSize(); }
  int32_t end_of_sentence() const override { return processor_.eos_id(); }
  void encode(std::string_view text, std::vector<int32_t>& tokens) const override {
    const std::vector<int> ids = processor_.EncodeAsIds({text.data(), text.size()});
    tokens.insert(tokens.end(), ids.begin(), ids.end());
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

Processor* load(const std::string& model) {
  auto processor = std::make_unique<LibraryProcessor>();
  return processor->load(model) ? processor.release() : nullptr;
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
}  // namespace gyre::sentencepiece_module

extern "C" __attribute__((visibility("default"))) const gyre::sentencepiece_module::Module gyre_sentencepiece_module;
const gyre::sentencepiece_module::Module gyre_sentencepiece_module = {gyre::sentencepiece_module::load,
                                                                      gyre::sentencepiece_module::train};
