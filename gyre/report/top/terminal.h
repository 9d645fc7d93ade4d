// A terminal that shows one screen after the other, and is restored by the destructor. Implemented with ncurses
// (ncurses/ncurses.cpp); a build without it has no terminal (ncurses/no_ncurses.cpp).
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "gyre/report/top/screen.h"

namespace gyre {

enum class Key { None, Quit, Up, Down, PageUp, PageDown, Home, End, Resized };

class Terminal {
 public:
  virtual ~Terminal() = default;
  // The current size of the screen.
  virtual ScreenRoom room() const = 0;
  virtual void show(const Screen& screen) = 0;
  // The next key; None if there was none within this time, or if a stop is requested.
  virtual Key wait(std::chrono::milliseconds within, const std::stop_token& stop) = 0;
};

// The terminal of standard input and output. If it cannot show a screen, throws InputError that says what to do.
std::unique_ptr<Terminal> open_terminal();

}  // namespace gyre
