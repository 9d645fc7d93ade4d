// Where the time of a run goes, by kind of work: libtorch's record functions, of ATen's operations and of our kernels,
// each counted without those inside it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gyre::bench {

using KindSeconds = std::vector<std::pair<std::string, double>>;

class Breakdown {
 public:
  // Listens from now on, to all threads. One at a time.
  Breakdown();
  ~Breakdown();
  Breakdown(const Breakdown&) = delete;
  Breakdown& operator=(const Breakdown&) = delete;

  // By kind, of all threads since construction.
  KindSeconds seconds() const;
};

}  // namespace gyre::bench
