#include "gyre/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <cmath>

#include <algorithm>

#include "gyre/core/message.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

constexpr double kSmoothing = 0.95;
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(5);

int terminal_width(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

Progress::Progress(std::FILE* out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}

void Progress::start(int64_t total, int64_t done) {
  const std::lock_guard lock(mutex_);
  total_ = total;
  first_ = step_ = done;
  started_ = mark_ = drawn_ = Clock::now();
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
  if (now - drawn_ < (is_terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine)) && !last) return;
  drawn_ = now;
  draw();
}

std::string Progress::line() const {
  const std::chrono::duration<double> elapsed = Clock::now() - started_;
  const double per_step = elapsed.count() / static_cast<double>(std::max<int64_t>(1, step_ - first_));
  std::string text = fmt::format("step {}/{}  loss {:.4f}", step_, total_, loss_);
  if (tokens_per_second_ > 0) text += fmt::format("  {} tokens/s", human_count(tokens_per_second_));
  return text + fmt::format("  ETA {}", human_duration(per_step * static_cast<double>(total_ - step_)));
}

void Progress::draw() {
  const std::string text = line();
  if (!is_terminal_) {
    say(out_, text + "\n");
    return;
  }
  const int room = std::clamp(terminal_width(out_) - static_cast<int>(text.size()) - 4, 0, 40);
  std::string bar;
  if (room >= 8) {
    const auto filled =
        static_cast<size_t>(static_cast<double>(room) * static_cast<double>(step_) / static_cast<double>(total_));
    bar = "[" + std::string(filled, '=') + std::string(static_cast<size_t>(room) - filled, ' ') + "] ";
  }
  say(out_, fmt::format("\r\033[K{}{}", bar, text));
  visible_ = true;
}

void Progress::message(const std::string& text) {
  const std::lock_guard lock(mutex_);
  say(out_, fmt::format("{}{}\n", visible_ ? "\r\033[K" : "", text));
  if (visible_) draw();
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (visible_) say(out_, "\n");
  visible_ = false;
}

}  // namespace gyre
