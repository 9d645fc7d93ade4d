// How far the clock of another process is from this one's, from questions and answers (Cristian, 1989): an answer was
// given between its question and its arrival here, so half of that round trip is the most by which it can mislead.
// Clocks drift, so the quickest of the last answers counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>

namespace gyre {

class ClockOffset {
 public:
  // All in seconds: when the question left and the answer came by this clock, and what the other said in between.
  void add(double asked, double other, double answered) {
    if (answers_.size() == kKept) answers_.pop_front();
    answers_.push_back({answered - asked, other - (asked + answered) / 2});
  }
  // What to add to this clock's time to have the other's; once there is an answer.
  double offset() const {
    return std::min_element(answers_.begin(), answers_.end(),
                            [](const Answer& a, const Answer& b) { return a.round_trip < b.round_trip; })
        ->offset;
  }

 private:
  static constexpr size_t kKept = 16;
  struct Answer {
    double round_trip, offset;
  };
  std::deque<Answer> answers_;
};

}  // namespace gyre
