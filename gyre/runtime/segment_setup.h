// One segment as run by one process: its links, this process's workers, and the conductor.
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
  // Throws InputError if the segment does not fit the pipeline. All arguments must outlive it. Without an observer,
  // the conductor is in another process.
  SegmentSetup(Pipeline& pipeline, const Segment& segment, SegmentObserver* observer, const WrapTransport& wrap);

  // Of this process; tensors are those on its workers' devices.
  ProcessMemory process_memory() const;

  Doorbells bells;
  MemoryTransport memory;
  std::unique_ptr<Transport> wrapped;  // null: `memory` is used
  ReplicaNumbers numbers;
  std::unique_ptr<Conductor> conductor;
  std::vector<std::unique_ptr<Worker>> workers;  // those of this process, by number

 private:
  Transport& transport() { return wrapped ? *wrapped : memory; }
};

}  // namespace gyre
