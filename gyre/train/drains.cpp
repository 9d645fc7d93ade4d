#include "gyre/train/drains.h"

#include <algorithm>

namespace gyre {

int64_t DrainPlan::next(int64_t done) const {
  int64_t point = updates;
  for (const int64_t every : {eval_every, checkpoint_every}) {
    if (every > 0) point = std::min(point, (done / every + 1) * every);
  }
  for (const int64_t at : extra) {
    if (at > done) point = std::min(point, at);
  }
  return point;
}

}  // namespace gyre
