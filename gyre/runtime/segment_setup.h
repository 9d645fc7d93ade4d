// One segment as one process runs it: its links, the workers that are here, and the conductor.
#pragma once

#include <memory>
#include <vector>

#include "gyre/runtime/conductor.h"
#include "gyre/runtime/executor.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/transport/memory_transport.h"
#include "gyre/runtime/worker.h"

namespace gyre {

struct SegmentSetup {
  // Throws InputError when the schedule does not fit the pipeline. All arguments outlive it. Without an observer the
  // conductor is another process's.
  SegmentSetup(Pipeline& pipeline, const Segment& segment, SegmentObserver* observer, const WrapTransport& wrap);

  Doorbells bells;
  MemoryTransport memory;
  std::unique_ptr<Transport> wrapped;  // null: none
  ReplicaNumbers numbers;
  std::unique_ptr<Conductor> conductor;
  std::vector<std::unique_ptr<Worker>> workers;  // those that are here, by number

 private:
  Transport& transport() { return wrapped ? *wrapped : memory; }
};

}  // namespace gyre
