// The conductor: the part of a segment that belongs to no worker. It hears their reports, passes them on to the
// observer, decides where the segment drains, and adds up what was seen. It acts only when it is asked to attend.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gyre/runtime/reports.h"
#include "gyre/runtime/segment.h"
#include "gyre/runtime/worker_links.h"

namespace gyre {

class Conductor {
 public:
  // All arguments outlive it.
  Conductor(const Segment& segment, Transport& transport, SegmentObserver& observer);

  // Hears every report that has come, and answers.
  void attend();
  // Whether every worker's program has ended.
  bool finished() const { return ended_ == links_.reports.size(); }
  // Whether the segment was interrupted, and drains.
  bool interrupted() const { return interrupted_; }
  // Of the whole segment, once it has finished.
  SegmentReport report(double seconds) const;

 private:
  void hear(size_t worker, Report report);
  void ask_to_hold();
  void set_limit();

  const Segment& segment_;
  SegmentObserver& observer_;
  ConductorLinks links_;
  std::vector<FinalReport> seen_;  // [worker]
  size_t ended_ = 0;
  // A drain. Every worker that takes microbatches in is asked to hold and to say what it has taken in; the window that
  // the latest of them is in is the last.
  enum class Drain { None, Holding, Limited } drain_ = Drain::None;
  std::vector<bool> holds_;  // [worker]: has answered, or has nothing to take in
  int64_t admitted_ = 0;     // by those that have answered
  int64_t limit_;
  bool interrupted_ = false;
  bool told_ = false;  // where an interrupted segment drains
};

}  // namespace gyre
