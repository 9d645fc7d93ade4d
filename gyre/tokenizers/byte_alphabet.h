// The characters that byte-level vocabularies write bytes as: the printable ones of Latin-1 as themselves, the others
// from U+0100 on, in order.
#pragma once

#include <array>

#include "gyre/core/utf8.h"

namespace gyre {

inline std::array<char32_t, 256> byte_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    alphabet[byte] = itself ? byte : next++;
  }
  return alphabet;
}

}  // namespace gyre
