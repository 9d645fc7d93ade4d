#include "gyre/data/utf8.h"

namespace gyre {

std::optional<int64_t> Utf8Checker::check(std::string_view piece) {
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (missing_ > 0) {
      if (byte < least_ || byte > most_) return offset_;
      --missing_;
      least_ = 0x80;
      most_ = 0xBF;
    } else if (byte >= 0x80) {
      if (byte < 0xC2 || byte > 0xF4) return offset_;
      missing_ = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
      if (byte == 0xE0) least_ = 0xA0;
      if (byte == 0xED) most_ = 0x9F;
      if (byte == 0xF0) least_ = 0x90;
      if (byte == 0xF4) most_ = 0x8F;
    }
    ++offset_;
  }
  return std::nullopt;
}

}  // namespace gyre
