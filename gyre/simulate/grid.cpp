#include "gyre/simulate/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gyre/core/error.h"
#include "gyre/schedule/limits.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

// Columns per forward, such that a backward, and half of one, take a whole number of columns where possible.
int columns_per_forward(double tb_over_tf) {
  for (int columns = 1; columns <= 4; ++columns) {
    const double half = tb_over_tf * columns / 2;
    if (std::abs(half - std::round(half)) < 1e-9) return columns;
  }
  return 4;
}

}  // namespace

std::string to_grid(const Schedule& schedule, int64_t microbatches, double tb_over_tf) {
  const Simulation simulation =
      simulate(schedule, uniform_costs(tb_over_tf), {.microbatches = microbatches, .trace = true});
  const int scale = columns_per_forward(tb_over_tf);
  if (simulation.makespan * scale * schedule.workers > static_cast<double>(kMostWritten)) {
    throw InputError(
        fmt::format("schedule {}: a grid of {:.0f} columns for {} workers is more than {} cells, the most "
                    "that are drawn; give fewer microbatches or stages",
                    schedule.name, simulation.makespan * scale, schedule.workers, kMostWritten));
  }
  const auto column = [&](double time) { return static_cast<size_t>(std::llround(time * scale)); };
  size_t width = 0;
  for (const auto& actions : simulation.trace) {
    for (const TimedAction& timed : actions) {
      if (!timed.action.is_per_window()) width = std::max(width, to_string(timed.action, schedule.pipelines).size());
    }
  }
  std::string text;
  for (int worker = 0; worker < schedule.workers; ++worker) {
    std::vector<std::string> cells(column(simulation.makespan), ".");
    for (const TimedAction& timed : simulation.trace[worker]) {
      if (timed.action.is_per_window()) continue;
      const size_t end = std::min(column(timed.end), cells.size());
      for (size_t c = column(timed.start); c < end; ++c) {
        cells[c] = c == column(timed.start) ? to_string(timed.action, schedule.pipelines) : std::string(width, '-');
      }
    }
    text += fmt::format("worker {:<3}", worker);
    for (const std::string& cell : cells) text += fmt::format(" {:<{}}", cell, width);
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

}  // namespace gyre
