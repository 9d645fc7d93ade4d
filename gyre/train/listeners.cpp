#include "gyre/train/listeners.h"

#include <fmt/format.h>

#include <utility>

#include "gyre/core/text.h"

namespace gyre {

void StopAnnouncer::announce() {
  std::call_once(said_, [this] {
    progress_.message(
        fmt::format("stopping: the pipeline drains, then a checkpoint is saved; once more abandons the "
                    "updates since step {}",
                    saved()));
  });
}

SegmentListener::SegmentListener(int stages, const Segment& segment, std::function<void(const StepRecord&)> record,
                                 Progress& progress, LiveFile& live, StopAnnouncer& announcer,
                                 std::function<void(const Error&)> give_up, std::function<void(int64_t)> count_skipped)
    : StepRecorder(stages, segment, std::move(record)),
      window_(segment.schedule->window),
      progress_(progress),
      live_(live),
      announcer_(announcer),
      give_up_(std::move(give_up)),
      count_skipped_(std::move(count_skipped)) {}

void SegmentListener::on_drain(int64_t microbatches) {
  const int64_t unfinished = microbatches - steps() * window_;
  if (unfinished <= 0) return;  // the request came while the pipeline was empty, for example during an evaluation
  progress_.message(fmt::format("draining: waiting for {} in flight", counted(unfinished, "microbatch")));
}

}  // namespace gyre
