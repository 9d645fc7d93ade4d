#include "gyre/core/message.h"

namespace gyre {

void say(std::FILE* out, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
  std::clearerr(out);
}

}  // namespace gyre
