// A status line for the user: redrawn with a bar on a terminal, and plain lines now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

namespace gyre {

// Whether `out` is a terminal on which a line can be redrawn. One with TERM=dumb, such as an editor's, cannot.
bool can_redraw(std::FILE* out);

class StatusLine {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  StatusLine(std::FILE* out, bool is_terminal, Clock clock = std::chrono::steady_clock::now)
      : out_(out), is_terminal_(is_terminal), clock_(std::move(clock)) {}
  ~StatusLine() { finish(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Whether it is time to draw again. Ask before making the text.
  bool is_due() const;
  void restart() { drawn_ = clock_(); }
  // share: how full the bar is, 0 to 1; negative: no bar.
  void draw(double share, const std::string& text);
  // Prints a line of its own in place of the bar; call draw() afterwards.
  void message(const std::string& text);
  bool is_visible() const { return visible_; }
  // Ends the line; it stays visible.
  void finish();

 private:
  std::FILE* out_;
  bool is_terminal_;
  Clock clock_;
  std::chrono::steady_clock::time_point drawn_ = clock_();
  bool visible_ = false;
};

}  // namespace gyre
