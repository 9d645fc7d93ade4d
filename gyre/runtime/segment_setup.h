// What every executor needs before it can run a segment, and the report it makes afterwards.
#pragma once

#include <memory>
#include <vector>

#include "gyre/runtime/doorbell.h"
#include "gyre/runtime/worker.h"

namespace gyre {

struct SegmentSetup {
  // Channels within one process. Throws InputError when the schedule does not fit the pipeline.
  SegmentSetup(Pipeline& pipeline, const Segment& segment);

  void add_workers(const WorkerSink& sink);
  SegmentReport report(double seconds) const;

  std::vector<std::shared_ptr<Doorbell>> bells;  // [worker]
  SegmentShared shared;
  std::vector<std::unique_ptr<Worker>> workers;
};

}  // namespace gyre
