// The screen of gyre top, as text: a function of the figures and of the room there is.
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
  int height = 24;   // 0: as many lines as there are
  int first = 0;     // worker that the list begins with
  bool keys = true;  // whether the last line says which keys there are
};

struct Screen {
  std::vector<ScreenLine> lines;  // no more than there is room for, none wider
  int workers = 0, shown = 0;     // in all; that have a line here
  int first = 0;                  // of those shown
};

inline constexpr int kLeastWidth = 40, kLeastHeight = 8;

Screen draw_screen(const TopFigures& figures, const ScreenRoom& room);
std::string plain_text(const Screen& screen);
// Columns of a text whose characters are one wide each.
int columns(std::string_view text);

// (height) lines of `width` characters of braille, which have 2 x 4 dots each. `values` from the left to the right; of
// those that share a column of dots all are drawn, from the lowest to the highest.
std::vector<std::string> braille_curve(const std::vector<double>& values, int width, int height);

}  // namespace gyre
