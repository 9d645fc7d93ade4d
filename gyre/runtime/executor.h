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

// How long a drain waits for any action to finish.
constexpr double drain_deadline(double stall_seconds) {
  return 10 * stall_seconds;
}

// How a run ended.
enum class RunEnd { Finished, Interrupted, Diverged, Failed, Refused };

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs until every worker's program has ended: afterwards the pipeline is empty and its state is weights and
  // optimizers. Errors: RunError (stall, naming every worker's next action; non-finite values; versions, delays or
  // mismatches that differ from the schedule's analysis). After an error the pipeline must not be used again.
  virtual SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) = 0;
  // There is nothing more to run; other processes hear of it.
  virtual void ended(RunEnd /*end*/) {}
};

// Puts another transport in the place of the one in memory, which it is given and which outlives it, with the bells to
// ring.
using WrapTransport = std::function<std::unique_ptr<Transport>(Transport& memory, const Doorbells& bells)>;

std::unique_ptr<Executor> make_replay_executor(WrapTransport wrap = {});   // replay_executor.cpp
std::unique_ptr<Executor> make_threads_executor(WrapTransport wrap = {});  // threads_executor.cpp
// By the name of its ExecutorKind. InputError for an unknown one.
std::unique_ptr<Executor> make_executor(const std::string& name, WrapTransport wrap = {});

}  // namespace gyre
