#include "gyre/report/progress.h"

#include <fmt/format.h>
#include <cmath>

#include <algorithm>

#include "gyre/core/text.h"

namespace gyre {
namespace {

constexpr double kSmoothing = 0.95;

}  // namespace

Progress::Progress(std::FILE* out, bool is_terminal) : status_(out, is_terminal) {}

void Progress::start(int64_t total, int64_t done) {
  const std::lock_guard lock(mutex_);
  total_ = total;
  first_ = step_ = done;
  started_ = mark_ = Clock::now();
  status_.restart();
}

void Progress::step(int64_t step, double loss, double tokens) {
  const std::lock_guard lock(mutex_);
  if (std::isfinite(loss)) loss_ = step_ == first_ ? loss : kSmoothing * loss_ + (1 - kSmoothing) * loss;
  if (step_ == first_) tokens_at_mark_ = tokens;
  step_ = step;
  tokens_ = tokens;
  const auto now = Clock::now();
  const std::chrono::duration<double> since_mark = now - mark_;
  if (since_mark.count() > 2) {
    tokens_per_second_ = (tokens_ - tokens_at_mark_) / since_mark.count();
    tokens_at_mark_ = tokens_;
    mark_ = now;
  }
  const bool last = step_ == total_;
  if (last || status_.is_due()) draw();
}

// At the mean pace of this session.
double Progress::seconds_left() const {
  const std::chrono::duration<double> elapsed = Clock::now() - started_;
  const double per_step = elapsed.count() / static_cast<double>(std::max<int64_t>(1, step_ - first_));
  return per_step * static_cast<double>(total_ - step_);
}

Progress::Pace Progress::pace() {
  const std::lock_guard lock(mutex_);
  Pace pace;
  if (tokens_per_second_ > 0) pace.tokens_per_second = tokens_per_second_;
  if (step_ > first_) pace.seconds_left = seconds_left();
  return pace;
}

std::string Progress::line() const {
  std::string text = fmt::format("step {}/{}  loss {:.4f}", step_, total_, loss_);
  if (tokens_per_second_ > 0) text += fmt::format("  {} tokens/s", human_count(tokens_per_second_));
  return text + fmt::format("  ETA {}", human_duration(seconds_left()));
}

void Progress::draw() {
  status_.draw(static_cast<double>(step_) / static_cast<double>(total_), line());
}

void Progress::message(const std::string& text) {
  const std::lock_guard lock(mutex_);
  status_.message(text);
  if (status_.is_visible()) draw();
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  status_.finish();
}

}  // namespace gyre
