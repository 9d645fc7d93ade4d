// live.json, and the screen drawn from it.
#include "gyre/report/live.h"

#include "fuzz/targets.h"
#include "gyre/report/columns.h"
#include "gyre/report/top/screen.h"

namespace gyre::fuzz {

void live(std::string_view input) {
  const auto run = accepted([&] { return parse_live_run(input, "input"); });
  if (!run) return;
  const std::string text = to_json(*run);
  require(to_json(parse_live_run(text, "written")) == text, "what is written reads back the same");
  TopFigures figures;
  figures.name = "run";
  figures.now = run->written + 1;
  figures.begun = true;
  figures.live = *run;
  for (const int width : {40, 80, 200}) {
    const Screen screen = draw_screen(figures, {.width = width, .height = 24});
    require(screen.lines.size() == 24, "the screen is as high as it is");
    for (const ScreenLine& line : screen.lines) {
      int wide = 0;
      for (const Span& span : line) wide += columns(span.text);
      require(wide <= width, "no line is wider than the screen");
    }
  }
}

}  // namespace gyre::fuzz
