// Counts how much is written to files at once: what is written in pieces is not in memory as a whole.
#pragma once

#include <algorithm>
#include <cstddef>

#include "support/forwarding_files.h"

namespace gyre {

class CountedWrites final : public ForwardingFiles {
 public:
  ssize_t write(int descriptor, const void* data, size_t bytes) override {
    most = std::max(most, bytes);
    return ForwardingFiles::write(descriptor, data, bytes);
  }
  size_t most = 0;
};

}  // namespace gyre
