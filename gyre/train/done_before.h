#pragma once

#include <cstdint>

namespace gyre {

// What a run that is resumed has done before.
struct DoneBefore {
  int64_t updates = 0;
  int64_t tokens = 0;
};

}  // namespace gyre
