// The losses of a run for a curve on a screen: a few thousand of them, however long the run is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gyre {

using LossPoint = std::pair<int64_t, double>;  // (update, loss)

// Keeps all losses while they are few. Later it keeps the first, the latest, and the lowest and highest of each
// stretch. All stretches but the last are equally long, so the curve keeps its shape.
class LossCurve {
 public:
  static constexpr size_t kMostStretches = 4096;

  void add(LossPoint point);
  // By update.
  std::vector<LossPoint> points() const;

 private:
  std::vector<LossPoint> kept_;  // the first loss, and two of each stretch that is full
  std::vector<LossPoint> last_;  // all losses of the stretch that is not full yet
  size_t length_ = 2;            // of a full stretch
  LossPoint latest_;
};

}  // namespace gyre
