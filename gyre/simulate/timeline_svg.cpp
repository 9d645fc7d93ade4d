#include "gyre/simulate/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gyre/core/text.h"
#include "gyre/simulate/simulator.h"
#include "gyre/svg/svg.h"

namespace gyre {
namespace {

constexpr double kLeft = 76, kTop = 34, kRight = 12;
constexpr double kRow = 24, kGap = 4, kLegend = 34;
constexpr double kForward = 20, kWidest = 1600;  // width of a forward; largest width of all, in pixels
constexpr SvgFont kInBox{11, false};

struct Look {
  ActionKind kind;
  const char* name;
  std::array<const char*, 2> colours;  // of even and odd pipelines
};
// Colours that people with colour blindness can tell apart (Okabe and Ito).
constexpr Look kLooks[] = {{ActionKind::Forward, "forward", {"#56B4E9", "#0072B2"}},
                           {ActionKind::Backward, "backward", {"#F0B040", "#D55E00"}},
                           {ActionKind::BackwardInput, "backward, inputs", {"#F0B040", "#D55E00"}},
                           {ActionKind::BackwardWeights, "backward, weights", {"#7FCDB4", "#009E73"}}};

const Look* look_of(ActionKind kind) {
  for (const Look& look : kLooks) {
    if (look.kind == kind) return &look;
  }
  return nullptr;  // updates and adoptions take no time
}

std::string box(double x, double y, double width, const char* colour) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\" fill=\"{}\"/>\n", x, y,
                     width, kRow, colour);
}

class Picture {
 public:
  Picture(const Schedule& schedule, const Simulation& simulation) : schedule_(schedule), simulation_(simulation) {
    scale_ = std::min(kForward, kWidest / std::max(1.0, simulation.makespan));
    bottom_ = kTop + schedule.workers * (kRow + kGap);
  }

  std::string draw() {
    const std::string title = fmt::format("{}: {} through {}, workers wait {:.0f}% of the time", schedule_.name,
                                          counted(simulation_.microbatches, "microbatch"),
                                          counted(schedule_.stages, "stage"), 100 * (1 - simulation_.utilisation()));
    const double title_width = kLeft + svg_text_width(title, kSvgTitle) + kRight;
    const double width = std::max({kLeft + simulation_.makespan * scale_ + kRight, title_width, 520.0});
    svg_ = svg_text(kLeft, 20, "start", title, kSvgTitle);
    for (int worker = 0; worker < schedule_.workers; ++worker) draw_worker(worker);
    const double legend_end = draw_legend();
    return svg_begin(std::max(width, legend_end + kRight), bottom_ + kLegend) + svg_ + "</svg>\n";
  }

 private:
  void draw_worker(int worker) {
    const double y = kTop + worker * (kRow + kGap);
    svg_ += svg_text(kLeft - 8, y + kRow / 2 + 4, "end", fmt::format("worker {}", worker));
    svg_ += box(kLeft, y, simulation_.makespan * scale_, "#f2f2f2");
    for (const TimedAction& timed : simulation_.trace[worker]) {
      const Look* look = look_of(timed.action.kind);
      if (look == nullptr) continue;
      const size_t shade = static_cast<size_t>(timed.action.pipeline) % look->colours.size();
      const double x = kLeft + timed.start * scale_, width = (timed.end - timed.start) * scale_;
      svg_ += box(x + 0.5, y, std::max(0.5, width - 1), look->colours[shade]);
      const std::string number = fmt::format("{}", timed.action.microbatch);
      if (svg_text_width(number, kInBox) > width - 3) continue;
      svg_ += svg_text(x + width / 2, y + kRow / 2 + 4, "middle", number, kInBox, shade == 0 ? "" : "fill=\"#ffffff\"");
    }
  }

  // Draws the kinds of actions that occur. Returns where the legend ends.
  double draw_legend() {
    double x = kLeft;
    const auto entry = [&](const char* colour, const std::string& name) {
      svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" rx=\"2\" fill=\"{}\"/>\n", x,
                          bottom_ + 10, colour);
      svg_ += svg_text(x + 20, bottom_ + 21, "start", name);
      x += 44 + svg_text_width(name);
    };
    for (const Look& look : kLooks) {
      const bool there = std::any_of(simulation_.trace.begin(), simulation_.trace.end(), [&](const auto& actions) {
        return std::any_of(actions.begin(), actions.end(),
                           [&](const TimedAction& timed) { return timed.action.kind == look.kind; });
      });
      if (there) entry(look.colours[0], look.name);
    }
    entry("#f2f2f2", "waiting");
    if (schedule_.pipelines > 1) {
      const std::string note = "dark: every other pipeline";
      svg_ += svg_text(x, bottom_ + 21, "start", note);
      x += svg_text_width(note);
    }
    return x;
  }

  const Schedule& schedule_;
  const Simulation& simulation_;
  double scale_ = kForward;
  double bottom_ = 0;
  std::string svg_;
};

}  // namespace

std::string to_svg(const Schedule& schedule, int64_t microbatches, double tb_over_tf) {
  const Simulation simulation =
      simulate(schedule, uniform_costs(tb_over_tf), {.microbatches = microbatches, .trace = true});
  return Picture(schedule, simulation).draw();
}

}  // namespace gyre
