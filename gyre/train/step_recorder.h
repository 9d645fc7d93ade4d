// Puts the pieces of an update together: losses come from the last stage, gradient norms from every stage, each at its
// own time. A step is reported when all of it is known, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "gyre/runtime/segment.h"

namespace gyre {

struct StepRecord {
  int64_t step = 0;      // updates made, this one included
  double loss = 0;       // mean over the window
  double grad_norm = 0;  // of the whole model, before clipping
};

class StepRecorder : public SegmentObserver {
 public:
  // Microbatches and updates are numbered through the whole run. The segment gives its first ones, because another
  // session may have had other windows.
  StepRecorder(int stages, const Segment& segment, std::function<void(const StepRecord&)> tell);

  // Steps reported so far.
  int64_t steps() const { return steps_told_; }

  void on_loss(int64_t microbatch, double loss) override;
  void on_update(int stage, int64_t update, const std::vector<double>& squared_norms) override;

 private:
  struct Pending {
    std::map<int64_t, double> losses;                // by microbatch: summed in that order
    std::vector<std::vector<double>> squared_norms;  // [stage]
    int updated = 0;
  };
  void tell_complete();
  bool next_is_complete() const;
  StepRecord take_next();

  int stages_;
  int64_t window_;
  int64_t first_microbatch_, first_update_;
  std::function<void(const StepRecord&)> tell_;
  std::map<int64_t, Pending> pending_;  // by step; the first is the next to be told, if anything of it is known
  int64_t steps_told_ = 0;
};

}  // namespace gyre
