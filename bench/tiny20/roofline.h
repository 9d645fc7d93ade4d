// The machine's upper bound: the time of a microbatch's matrix products alone, and of a pass over an update's bytes
// alone.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>

#include "tiny20/shape.h"

namespace gyre::bench {

// Processor time of all threads of this process.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Roofline {
 public:
  struct Seconds {
    double wall = 0;
    double processor = 0;  // summed over all workers; other programs do not add to it
    Seconds operator+(const Seconds& other) const { return {wall + other.wall, processor + other.processor}; }
    Seconds operator*(double factor) const { return {factor * wall, factor * processor}; }
  };
  struct Times {
    Seconds microbatch;  // the products of one microbatch, while all workers work on microbatches of their own
    Seconds update;      // one update, with each worker on its share of the parameters
    Seconds of(double microbatches, double updates) const { return microbatch * microbatches + update * updates; }
  };
  virtual ~Roofline() = default;
  virtual Times measure() = 0;
};

// Null if oneDNN, which computes the products, is not in the build or cannot compute them on this CPU.
std::unique_ptr<Roofline> make_roofline(const Shape& shape, int64_t parameters);

}  // namespace gyre::bench
