#include "gyre/train/training_rate.h"

#include <algorithm>

#include "gyre/core/timing.h"

namespace gyre {
namespace {

constexpr double kSpan = 1;           // seconds
constexpr double kMinSeconds = 1e-9;  // avoids a division by zero if the clock has not moved

}  // namespace

void TrainingRate::go_on(Clock::time_point now) {
  went_on_ = now;
}

void TrainingRate::stop(Clock::time_point now) {
  before_ = seconds_at(now);
}

double TrainingRate::update(int64_t tokens, Clock::time_point now) {
  const Mark mark = {seconds_at(now), marks_.back().tokens + tokens};
  marks_.push_back(mark);
  while (mark.seconds - marks_[1].seconds >= kSpan) marks_.pop_front();
  const Mark& first = marks_.front();
  return static_cast<double>(mark.tokens - first.tokens) / std::max(kMinSeconds, mark.seconds - first.seconds);
}

double TrainingRate::seconds_at(Clock::time_point now) const {
  return before_ + seconds_between(went_on_, now);
}

}  // namespace gyre
