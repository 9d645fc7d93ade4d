// The times at which something arrives at several receivers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gyre {

// A deep pipeline has millions of these objects, so times per receiver are stored only if they differ.
class Arrivals {
 public:
  double at(int receiver) const { return each_.empty() ? all_ : each_[static_cast<size_t>(receiver)]; }
  void all_at_least(double time) {
    all_ = std::max(all_, time);
    for (double& own : each_) own = std::max(own, time);
  }
  void at_least(int receiver, double time, int receivers) {
    if (time <= at(receiver)) return;
    if (receivers == 1) {
      all_ = time;
      return;
    }
    if (each_.empty()) each_.assign(static_cast<size_t>(receivers), all_);
    each_[static_cast<size_t>(receiver)] = time;
  }

 private:
  double all_ = 0;
  std::vector<double> each_;
};

}  // namespace gyre
