// How far another process's clock is from this one's, from questions and answers (Cristian, 1989). The answer was given
// between the question and its arrival here, so the error is at most half of that round trip. Clocks drift, so the
// fastest of the latest answers counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>

namespace gyre {

class ClockOffset {
 public:
  // All in seconds: this clock's time when the question left and when the answer came, and the other's time in between.
  void add(double asked, double other, double answered) {
    if (answers_.size() == kKept) answers_.pop_front();
    answers_.push_back({answered - asked, other - (asked + answered) / 2});
  }
  // What to add to this clock's time to get the other's; 0 without an answer.
  double offset() const {
    if (answers_.empty()) return 0;
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
