#include "gyre/report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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
  average_loss_ = std::numeric_limits<double>::quiet_NaN();
  started_ = Clock::now();
  status_.restart();
}

void Progress::step(int64_t step, double loss, double tokens_per_second) {
  const std::lock_guard lock(mutex_);
  // After a loss that is not finite the average starts again.
  average_loss_ = std::isfinite(average_loss_) ? kSmoothing * average_loss_ + (1 - kSmoothing) * loss : loss;
  step_ = step;
  tokens_per_second_ = tokens_per_second;
  const bool last = step_ == total_;
  if (last || status_.is_due()) draw();
}

double Progress::time_left() const {
  const std::chrono::duration<double> elapsed = Clock::now() - started_;
  const double per_step = elapsed.count() / static_cast<double>(std::max<int64_t>(1, step_ - first_));
  return per_step * static_cast<double>(total_ - step_);
}

std::optional<double> Progress::seconds_left() {
  const std::lock_guard lock(mutex_);
  return step_ > first_ ? std::optional(time_left()) : std::nullopt;
}

std::string Progress::line() const {
  const std::string loss = std::isfinite(average_loss_) ? fmt::format("{:.4f}", average_loss_) : "not finite";
  std::string text = fmt::format("step {}/{}  average loss {}", step_, total_, loss);
  if (tokens_per_second_ > 0) text += fmt::format("  {} tokens/s", human_count(tokens_per_second_));
  return text + fmt::format("  ETA {}", human_duration(time_left()));
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
