#include "gyre/report/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "gyre/core/message.h"
#include "gyre/core/text.h"
#include "gyre/report/columns.h"

namespace gyre {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(5);

int terminal_width(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

bool can_redraw(std::FILE* out) {
  const char* kind = std::getenv("TERM");
  const bool is_dumb = kind != nullptr && std::string_view(kind) == "dumb";
  return ::isatty(fileno(out)) != 0 && !is_dumb;
}

bool StatusLine::is_due() const {
  const std::chrono::steady_clock::duration pause = clock_() - drawn_;
  return is_terminal_ ? pause >= kRedraw : pause >= kPlainLine;
}

void StatusLine::draw(double share, const std::string& text) {
  drawn_ = clock_();
  if (!is_terminal_) {
    say_lines(out_, text);
    return;
  }
  // A line as wide as the terminal may wrap, and the next drawing would leave its beginning on the screen.
  const int width = terminal_width(out_) - 1;
  const std::string shown = cut(printable(text), width);
  const int room = std::clamp(width - columns(shown) - 3, 0, 40);
  std::string bar;
  if (room >= 8 && share >= 0) {
    const auto filled = static_cast<size_t>(static_cast<double>(room) * std::min(1.0, share));
    bar = "[" + std::string(filled, '=') + std::string(static_cast<size_t>(room) - filled, ' ') + "] ";
  }
  say(out_, fmt::format("\r\033[K{}{}", bar, shown));
  visible_ = true;
}

void StatusLine::message(const std::string& text) {
  if (visible_) say(out_, "\r\033[K");
  say_lines(out_, text);
}

void StatusLine::finish() {
  if (visible_) say(out_, "\n");
  visible_ = false;
}

}  // namespace gyre
