// A terminal that shows one screen after the other, and is as it was when this ends. ncurses is behind it
// (ncurses/ncurses.cpp); without it there is none (ncurses/no_ncurses.cpp).
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
  // Of the screen, now.
  virtual ScreenRoom room() const = 0;
  virtual void show(const Screen& screen) = 0;
  // The next key; None when there was none for so long, or a stop is requested.
  virtual Key wait(std::chrono::milliseconds within, const std::stop_token& stop) = 0;
};

// Of standard input and output. InputError where it cannot show a screen, with what to do.
std::unique_ptr<Terminal> open_terminal();

}  // namespace gyre
