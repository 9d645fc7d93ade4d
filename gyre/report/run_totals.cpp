#include "gyre/report/run_totals.h"

namespace gyre {

void TotalsCollector::take(const MetricsLine& line) {
  seconds_ = clock_.at(line);
  if (line.is("step")) {
    step_ = line.step();
    tokens_ = line.integer("tokens");
  } else if (line.is("resume")) {
    // The file was emptied: how many tokens the updates before had is not known until the next segment.
    if (line.step() > step_) tokens_at_begin_.reset();
  } else if (line.is("segment")) {
    take_segment(line);
  }
}

void TotalsCollector::take_segment(const MetricsLine& line) {
  const double seconds = line.real("seconds").value_or(0);
  if (tokens_at_begin_) {
    trained_tokens_ += tokens_ - *tokens_at_begin_;
    trained_seconds_ += seconds;
  }
  tokens_at_begin_ = tokens_;
  for (const std::optional<double> bubble : line.reals("bubbles")) {
    if (!bubble) continue;
    waited_ += *bubble * seconds;
    worked_or_waited_ += seconds;
  }
}

RunTotals TotalsCollector::totals() const {
  RunTotals totals{.seconds = seconds_, .earlier_seconds = clock_.earlier()};
  if (trained_seconds_ > 0) totals.tokens_per_second = static_cast<double>(trained_tokens_) / trained_seconds_;
  if (worked_or_waited_ > 0) totals.bubble_fraction = waited_ / worked_or_waited_;
  return totals;
}

}  // namespace gyre
