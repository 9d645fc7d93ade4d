// Reads tokenizers of Hugging Face's library: byte-level BPE, BPE as sentencepiece writes it, WordPiece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gyre/tokenizers/tokenizer.h"

namespace gyre {

// `text` is a tokenizer.json; `end_of_document` a token, or empty: then the first of <|endoftext|>, </s>, [SEP] in the
// vocabulary ends documents. Throws InputError naming what is damaged, missing or unknown to this gyre.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, const std::string& origin,
                                                const std::string& end_of_document);

}  // namespace gyre
