// Models of the sentencepiece library, as a damaged or foreign file would be: what loads can encode and decode. The
// library is linked here, not loaded apart: nothing else in this program has a protobuf.
#include <memory>
#include <vector>

#include "fuzz/targets.h"
#include "gyre/data/bpe/module.h"

extern "C" const gyre::bpe::Module gyre_bpe_module;

namespace gyre::fuzz {

void tokenizer(std::string_view input) {
  const std::unique_ptr<Tokenizer> tokenizer(gyre_bpe_module.load(std::string(input)));
  if (!tokenizer) return;
  std::vector<int32_t> tokens = {tokenizer->end_of_document()};
  tokenizer->encode("a line of text\nand \xc3\xa9 more\n", tokens);
  for (const int32_t token : tokens) {
    require(token >= 0 && token < tokenizer->vocabulary_size(), "tokens are of the vocabulary");
  }
  tokenizer->decode(tokens);
}

}  // namespace gyre::fuzz
