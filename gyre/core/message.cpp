#include "gyre/core/message.h"

#include "gyre/core/text.h"

namespace gyre {

void say(std::FILE* out, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
  std::clearerr(out);
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (size_t begin = 0;;) {
    const size_t end = text.find('\n', begin);
    shown += printable(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return shown;
    shown += '\n';
    begin = end + 1;
  }
}

void say_lines(std::FILE* out, std::string_view text) {
  say(out, printable_lines(text) + "\n");
}

}  // namespace gyre
