// Messages for people: progress, warnings, errors.
#pragma once

#include <cstdio>
#include <string_view>

namespace gyre {

// Writes `text` unchanged and flushes. A message that cannot be written (a full disk, a pipe whose reader has gone) is
// dropped without an error, so that no run ends for it.
void say(std::FILE* out, std::string_view text);

}  // namespace gyre
