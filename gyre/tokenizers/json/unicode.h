// What tokenizers need of Unicode: classes of characters and normal forms. By utf8proc: one small library with its
// tables in it. ICU would do as well, but is thirty megabytes, and another version of itself on every release of a
// distribution.
#pragma once

#include <string>
#include <string_view>

namespace gyre::unicode {

bool is_white_space(char32_t c);
bool is_punctuation(char32_t c);  // of the categories P, and all that ASCII has of signs
bool is_word(char32_t c);         // alphabetic, marks, decimal digits, connecting punctuation, joiners
bool is_other(char32_t c);        // control, format, private use
bool is_mark(char32_t c);         // of the categories M
bool is_nonspacing_mark(char32_t c);
bool is_ideograph(char32_t c);  // what BERT puts blanks around

void append_lowercase(std::string& text, char32_t c);
// The canonical decomposition of a character, without its nonspacing marks.
void append_without_accents(std::string& text, char32_t c);

enum class Form { NFC, NFD, NFKC, NFKD };
std::string normalize(std::string_view text, Form form);

}  // namespace gyre::unicode
