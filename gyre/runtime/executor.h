// Executors run a segment: `replay` in one thread, the reference; `threads` with one thread per worker; `processes`
// with the workers' threads in several processes. Same workers, same programs, same bits.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/segment.h"
#include "gyre/runtime/transport/link.h"
#include "gyre/runtime/transport/memory_transport.h"

namespace gyre {

// How long a segment that should end waits for any action to finish before it is given up.
constexpr double drain_deadline(double stall_seconds) {
  return 10 * stall_seconds;
}

// How a run ended that did not fail.
enum class RunEnd { Finished, Interrupted };

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs until every worker's program has ended. The pipeline is then empty, and its state is weights and optimizers.
  // Throws Divergence for values that are not finite, and RunError for a stall, naming every worker's next action, or
  // for versions, delays or mismatches that differ from the schedule's analysis. After an error the pipeline must not
  // be used again.
  virtual SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) = 0;
  // There is nothing more to run; other processes are told.
  virtual void end_run(RunEnd /*end*/) {}
  // The same after an error; other processes end with this exit code.
  virtual void fail_run(int /*exit_code*/) {}
};

// Makes the transport that replaces the one in memory. It gets that one, which outlives it, and the bells to ring.
using WrapTransport = std::function<std::unique_ptr<Transport>(Transport& memory, const Doorbells& bells)>;

std::unique_ptr<Executor> make_replay_executor(WrapTransport wrap = {});   // replay_executor.cpp
std::unique_ptr<Executor> make_threads_executor(WrapTransport wrap = {});  // threads_executor.cpp
// By the name of its ExecutorKind. Throws InputError for an unknown name.
std::unique_ptr<Executor> make_executor(const std::string& name, WrapTransport wrap = {});

}  // namespace gyre
