// The Unicode functions that tokenizers need: classes of characters and normal forms. They use utf8proc, a small
// library that includes its tables. ICU would do as well, but has thirty megabytes, and a different version in every
// release of a distribution.
#pragma once

#include <string>
#include <string_view>

namespace gyre::unicode {

bool is_white_space(char32_t c);
bool is_punctuation(char32_t c);  // categories P, and all ASCII symbols
bool is_word(char32_t c);         // alphabetic, marks, decimal digits, connecting punctuation, joiners
bool is_other(char32_t c);        // control, format, private use, surrogate
bool is_mark(char32_t c);         // categories M
bool is_nonspacing_mark(char32_t c);
bool is_ideograph(char32_t c);  // what BERT puts blanks around

void append_lowercase(std::string& text, char32_t c);
// The canonical decomposition of a character, without its nonspacing marks.
void append_without_accents(std::string& text, char32_t c);

enum class Form { NFC, NFD, NFKC, NFKD };
std::string normalize(std::string_view text, Form form);

}  // namespace gyre::unicode
