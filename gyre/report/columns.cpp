#include "gyre/report/columns.h"

#include "gyre/core/utf8.h"

namespace gyre {

int columns(std::string_view text) {
  int count = 0;
  for (size_t at = 0; at < text.size(); at += character_at(text, at).bytes) ++count;
  return count;
}

std::string cut(const std::string& text, int width) {
  size_t at = 0;
  for (int column = 0; column < width && at < text.size(); ++column) at += character_at(text, at).bytes;
  return text.substr(0, at);
}

}  // namespace gyre
