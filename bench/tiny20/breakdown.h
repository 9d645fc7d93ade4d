// Where the time of a run goes, by kind of work. Uses libtorch's record functions, of ATen's operations and of our
// kernels; each counts without the ones nested in it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gyre::bench {

using KindSeconds = std::vector<std::pair<std::string, double>>;

class Breakdown {
 public:
  // Listens to all threads from now on. Only one object may exist at a time.
  Breakdown();
  ~Breakdown();
  Breakdown(const Breakdown&) = delete;
  Breakdown& operator=(const Breakdown&) = delete;

  // Seconds by kind, summed over all threads since construction.
  KindSeconds seconds() const;
};

}  // namespace gyre::bench
