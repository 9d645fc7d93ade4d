// Messages for people: progress, warnings, errors.
#pragma once

#include <cstdio>
#include <string_view>

namespace gyre {

// Writes `text` as it is. A message that cannot be written (a full disk, a pipe whose reader has gone) is lost, and
// nothing else: no run ends for it.
void say(std::FILE* out, std::string_view text);

}  // namespace gyre
