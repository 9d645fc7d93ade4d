// Models of the sentencepiece library, such as a damaged or foreign file: whatever the library loads can encode and
// decode, and our own reader sees the same pieces in it. Either refuses files that the other accepts. Our reader does
// where a field has an unexpected type; the library where it misses something that our reader does not look for, and so
// gyre needs both to accept a model. The library is linked here rather than loaded as a module, since nothing else in
// this program uses protobuf.
#include <memory>
#include <vector>

#include "fuzz/targets.h"
#include "gyre/tokenizers/sentencepiece/module.h"
#include "gyre/tokenizers/sentencepiece/sentencepiece_model.h"

extern "C" const gyre::sentencepiece_module::Module gyre_sentencepiece_module;

namespace gyre::fuzz {

void tokenizer(std::string_view input) {
  const auto model = accepted([&] { return SentencePieceModel::parse(input, "input"); });
  const std::unique_ptr<sentencepiece_module::Processor> processor(gyre_sentencepiece_module.load(std::string(input)));
  if (!processor) return;
  std::vector<int32_t> tokens;
  processor->encode("a line of text\nand \xc3\xa9 more\n", tokens);
  for (const int32_t token : tokens) {
    require(token >= 0 && token < processor->pieces(), "tokens are of the vocabulary");
  }
  processor->decode(tokens);
  const int64_t end = processor->end_of_sentence();
  require(end >= -1 && end < processor->pieces(), "the end of a sentence is of the vocabulary");
  if (model) require(static_cast<int64_t>(model->pieces.size()) == processor->pieces(), "both see the same pieces");
}

}  // namespace gyre::fuzz
