// A line on stderr that says how much of a command's work is done, for work that may take minutes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "gyre/core/text.h"
#include "gyre/report/status_line.h"

namespace gyre::app {

class WorkLine {
 public:
  // "3 of 20 schedules simulated": `thing` is "schedule", `verb` "simulated".
  void draw(int64_t done, int64_t all, const std::string& thing, const std::string& verb) {
    if (!line_.is_due()) return;
    line_.draw(static_cast<double>(done) / static_cast<double>(all),
               fmt::format("{} of {} {}", done, counted(all, thing), verb));
  }

 private:
  StatusLine line_{stderr, can_redraw(stderr)};
};

}  // namespace gyre::app
