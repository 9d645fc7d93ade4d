// A status line for the user: redrawn with a bar on a terminal, and plain lines now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace gyre {

class StatusLine {
 public:
  StatusLine(std::FILE* out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}

  // Whether it is time to draw again. Ask before making the text.
  bool is_due() const;
  void restart() { drawn_ = Clock::now(); }
  // share: how full the bar is, 0 to 1; negative: no bar.
  void draw(double share, const std::string& text);
  // Prints a line of its own in place of the bar; call draw() afterwards.
  void message(const std::string& text);
  bool is_visible() const { return visible_; }
  // Ends the line; it stays visible.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::FILE* out_;
  bool is_terminal_;
  Clock::time_point drawn_ = Clock::now();
  bool visible_ = false;
};

}  // namespace gyre
