// One line for people that is redrawn on a terminal, with a bar; plain lines now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace gyre {

class StatusLine {
 public:
  StatusLine(std::FILE* out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}

  // Whether it is time to draw again; asked before the text is made.
  bool is_due() const;
  void restart() { drawn_ = Clock::now(); }
  // share: how full the bar is, 0 to 1; without a bar below 0.
  void draw(double share, const std::string& text);
  // A line of its own, above the bar; then draw() again.
  void message(const std::string& text);
  bool is_visible() const { return visible_; }
  // Leaves the line where it is.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::FILE* out_;
  bool is_terminal_;
  Clock::time_point drawn_ = Clock::now();
  bool visible_ = false;
};

}  // namespace gyre
