// Draws the screen of gyre top as text. The result depends only on the figures and the room.
#pragma once

#include <string>
#include <vector>

#include "gyre/report/top/figures.h"

namespace gyre {

enum class Look { Plain, Bold, Dim, Good, Warning, Bad };
struct Span {
  std::string text;  // UTF-8, every character one column wide
  Look look = Look::Plain;
};
using ScreenLine = std::vector<Span>;

struct ScreenRoom {
  int width = 80;
  int height = 24;   // 0: unlimited
  int first = 0;     // first worker in the list
  bool keys = true;  // whether the last line explains the keys
};

struct Screen {
  std::vector<ScreenLine> lines;  // at most as many as the height allows, none wider than the width
  int workers = 0, shown = 0;     // number of all workers, and of those in the list
  int first = 0;                  // the first worker in the list
};

Screen draw_screen(const TopFigures& figures, const ScreenRoom& room);
std::string plain_text(const Screen& screen);

}  // namespace gyre
