// The actions that a worker has handed to its device and that may not be done there yet, and the times of actions. On
// the CPU an action is done when its function returns. A device with streams does it later: the worker hands it the
// next ones meanwhile, so that it need not wait for their first kernels.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>

#include "gyre/runtime/transport/link.h"
#include "gyre/schedule/action.h"
#include "gyre/tensors/device.h"

namespace gyre {

class ActionsAhead {
 public:
  using Clock = std::chrono::steady_clock;

  // What became of an action.
  struct Done {
    Action action;
    Clock::time_point started, ended;
    std::optional<Clock::time_point> came;  // when its input came, if another process sent it
    std::optional<Message> report;          // for the conductor
  };

  // Actions of the device. Waits for what its current stream has to do, if events keep times.
  explicit ActionsAhead(at::Device device);

  // An action begins. Called again when something that it needs has come, for which the device may have to wait: that
  // time does not count.
  void begin();
  // All of the action that begun last has been handed over. report: its tensors are there once it is done.
  void end(const Action& action, std::optional<Clock::time_point> came, std::optional<Message> report);

  bool empty() const { return handed_over_.empty(); }
  // Whether no more should be handed over.
  bool full() const { return handed_over_.size() > kMost; }
  bool oldest_is_done() const { return handed_over_.front().ended.is_past(); }
  bool oldest_reports() const { return handed_over_.front().done.report.has_value(); }
  // Waits until it is done. There must be one.
  Done take_oldest();

 private:
  // The device has one action to do when another ends, while the thread hands over a third.
  static constexpr size_t kMost = 2;

  struct HandedOver {
    Done done;
    DeviceEvent began, ended;
  };
  void read_times(HandedOver& action);

  at::Device device_;
  DeviceEvent origin_;  // an event of a known time
  Clock::time_point origin_time_;
  Clock::time_point last_end_;
  DeviceEvent began_;  // of the action that began last
  Clock::time_point began_time_;
  std::deque<HandedOver> handed_over_;
};

}  // namespace gyre
