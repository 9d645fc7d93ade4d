// The characters that byte-level vocabularies write bytes as: printable Latin-1 characters stand for themselves, the
// other bytes are U+0100 and up, in order.
#pragma once

#include <array>

#include "gyre/core/utf8.h"

namespace gyre {

inline std::array<char32_t, 256> byte_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    alphabet[byte] = is_printable ? byte : next++;
  }
  return alphabet;
}

}  // namespace gyre
