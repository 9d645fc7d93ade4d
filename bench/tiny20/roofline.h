// What the machine could do at most: the products of a microbatch by themselves, and the bytes of an update by
// themselves.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>

#include "tiny20/shape.h"

namespace gyre::bench {

// Of this process, all threads.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Roofline {
 public:
  struct Seconds {
    double wall = 0;
    double processor = 0;  // of all workers; other programs do not add to it
    Seconds operator+(const Seconds& other) const { return {wall + other.wall, processor + other.processor}; }
    Seconds operator*(double factor) const { return {factor * wall, factor * processor}; }
  };
  struct Times {
    Seconds microbatch;  // the products of one, all workers working on microbatches of their own
    Seconds update;      // each worker on its share of the parameters
    Seconds of(double microbatches, double updates) const { return microbatch * microbatches + update * updates; }
  };
  virtual ~Roofline() = default;
  virtual Times measure() = 0;
};

// Null where there is no oneDNN to make the products.
std::unique_ptr<Roofline> make_roofline(const Shape& shape, int64_t parameters);

}  // namespace gyre::bench
