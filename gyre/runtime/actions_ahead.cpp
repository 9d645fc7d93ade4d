#include "gyre/runtime/actions_ahead.h"

#include <algorithm>
#include <utility>

namespace gyre {

ActionsAhead::ActionsAhead(at::Device device) : device_(device) {
  if (DeviceEvent::keep_times()) {
    origin_ = DeviceEvent::record_with_time(device);
    origin_.wait();
  }
  origin_time_ = last_end_ = Clock::now();
}

void ActionsAhead::begin() {
  began_ = DeviceEvent::record_with_time(device_);
  began_time_ = Clock::now();
}

void ActionsAhead::end(const Action& action, std::optional<Clock::time_point> came, std::optional<Message> report) {
  DeviceEvent ended = DeviceEvent::record_with_time(device_);
  if (report) report->ready = ended;
  Done done{action, began_time_, Clock::now(), came, std::move(report)};
  handed_over_.push_back({std::move(done), std::exchange(began_, {}), std::move(ended)});
}

ActionsAhead::Done ActionsAhead::take_oldest() {
  HandedOver oldest = std::move(handed_over_.front());
  handed_over_.pop_front();
  oldest.ended.wait();
  if (oldest.ended) read_times(oldest);
  return std::move(oldest.done);
}

// Its times on the device. Where the device keeps none, they are estimated: it began when it was handed over and the
// one before it had ended, and ends now.
void ActionsAhead::read_times(HandedOver& action) {
  Done& done = action.done;
  if (DeviceEvent::keep_times()) {
    const auto later = [](Clock::time_point time, double by) {
      return time + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(by));
    };
    done.started = later(origin_time_, action.began.seconds_since(origin_));
    done.ended = later(done.started, action.ended.seconds_since(action.began));
    // The longer the time, the coarser CUDA's is: a float of milliseconds.
    constexpr std::chrono::minutes kLongest{1};
    if (done.ended - origin_time_ > kLongest) {
      origin_ = action.ended;
      origin_time_ = done.ended;
    }
  } else {
    done.started = std::max(done.started, last_end_);
    done.ended = last_end_ = Clock::now();
  }
}

}  // namespace gyre
