// Reads tokenizers of Hugging Face's library: byte-level BPE, BPE as sentencepiece writes it, WordPiece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gyre/tokenizers/tokenizer.h"

namespace gyre {

// `text` is a tokenizer.json; `config` the tokenizer_config.json beside it, or empty; `end_of_document` a token, or
// empty: then the configuration's eos_token ends documents, or the first of <|endoftext|>, </s>, [SEP] in the
// vocabulary. Throws InputError naming what is damaged, missing or unknown to this gyre.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, std::string_view config,
                                                const std::string& origin, const std::string& end_of_document);

}  // namespace gyre
