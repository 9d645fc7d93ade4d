// What a run that is resumed has done before.
#pragma once

#include <cstdint>

namespace gyre {

struct DoneBefore {
  int64_t updates = 0;
  int64_t tokens = 0;
};

}  // namespace gyre
