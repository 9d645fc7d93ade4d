// threads: one thread per worker, in this process.
#include <fmt/format.h>

#include <utility>

#include "gyre/core/process_limits.h"
#include "gyre/runtime/threads_run.h"

namespace gyre {
namespace {

// Address space that the stack, the allocator and BLAS reserve for each computing thread.
constexpr size_t kThreadBytes = size_t{200} << 20;

class ThreadsExecutor final : public Executor {
 public:
  explicit ThreadsExecutor(WrapTransport wrap) : wrap_(std::move(wrap)) {}

  SegmentReport run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) override {
    if (!std::exchange(room_is_known_, true)) check_room_for_worker_threads(pipeline);
    return ThreadsRun(pipeline, segment, &observer, wrap_).run();
  }

 private:
  WrapTransport wrap_;
  bool room_is_known_ = false;
};

}  // namespace

void check_room_for_worker_threads(const Pipeline& pipeline) {
  const auto workers = static_cast<int>(pipeline.workers().size());
  const int threads = workers * pipeline.options().threads_per_worker;
  check_room_for_threads(threads, kThreadBytes,
                         fmt::format("{} workers with [pipeline] threads = {}", workers, threads / workers));
}

std::unique_ptr<Executor> make_threads_executor(WrapTransport wrap) {
  return std::make_unique<ThreadsExecutor>(std::move(wrap));
}

}  // namespace gyre
