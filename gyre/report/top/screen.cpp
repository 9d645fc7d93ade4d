#include "gyre/report/top/screen.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "gyre/core/text.h"
#include "gyre/report/columns.h"
#include "gyre/report/top/screen_text.h"

namespace gyre {
namespace {

// Number of periods without a new live.json after which the screen says so.
constexpr double kLate = 4;
constexpr int kMaxCurveLines = 12;

int columns_of(const ScreenLine& line) {
  return std::accumulate(line.begin(), line.end(), 0,
                         [](int sum, const Span& span) { return sum + columns(span.text); });
}

// Puts `right` at the right end of the line, if it fits.
void justify(ScreenLine& line, Span right, int width) {
  const int blanks = width - columns_of(line) - columns(right.text);
  if (blanks < 1) return;
  line.push_back({std::string(static_cast<size_t>(blanks), ' ')});
  line.push_back(std::move(right));
}

std::string percent(double share) {
  return fmt::format("{:.0f}%", 100 * share);
}

std::string number(const std::optional<double>& value, const char* format) {
  return value && std::isfinite(*value) ? fmt::format(fmt::runtime(format), *value) : "-";
}

// A loss of a run that diverges may have forty digits before the point.
std::string loss_text(double loss, int digits) {
  return std::abs(loss) < 1e6 ? fmt::format("{:.{}f}", loss, digits) : fmt::format("{:.3g}", loss);
}
std::string loss_text(const std::optional<double>& loss) {
  return loss && std::isfinite(*loss) ? loss_text(*loss, 4) : "-";
}

std::string at_time(double seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

Look look_of_share(double busy) {
  return busy >= 0.8 ? Look::Good : busy >= 0.4 ? Look::Plain : Look::Warning;
}

class Drawing {
 public:
  Drawing(const TopFigures& figures, const ScreenRoom& room)
      : figures_(figures), room_(room), width_(std::max(room.width, 1)) {}

  Screen draw() {
    head();
    std::vector<ScreenLine> below;
    stages(below);
    memory(below);
    const int keys = room_.keys ? 1 : 0;
    const bool bounded = room_.height > 0;
    const int workers = live() ? static_cast<int>(live()->workers.size()) : 0;
    const int fixed = static_cast<int>(screen_.lines.size() + below.size()) + keys + (workers > 0 ? 2 : 0);
    const int free = bounded ? room_.height - fixed : 1'000'000;
    // The curve gets the lines that the workers leave, but at least a third of the free lines.
    int curve_lines = bounded ? std::clamp(std::max(free - workers - 1, free / 3), 0, kMaxCurveLines) : 6;
    if (curve_lines < 3 || figures_.metrics.losses.size() < 2) curve_lines = 0;
    curve(curve_lines);
    rows(bounded ? std::max(0, free - (curve_lines > 0 ? curve_lines + 1 : 0)) : workers);
    for (ScreenLine& line : below) add(std::move(line));
    if (bounded) {
      if (static_cast<int>(screen_.lines.size()) > room_.height - keys) {
        screen_.lines.resize(static_cast<size_t>(std::max(0, room_.height - keys)));
      }
      while (static_cast<int>(screen_.lines.size()) < room_.height - keys) screen_.lines.emplace_back();
    }
    if (room_.keys) help();
    return std::move(screen_);
  }

 private:
  const std::optional<LiveRun>& live() const { return figures_.live; }

  // Adds a line, cut to the width of the screen.
  void add(ScreenLine line) {
    int left = width_;
    ScreenLine shown;
    for (Span& span : line) {
      const int wide = columns(span.text);
      if (wide > left) span.text = cut(span.text, left);
      left -= std::min(wide, left);
      if (!span.text.empty()) shown.push_back(std::move(span));
    }
    screen_.lines.push_back(std::move(shown));
  }

  Span state() const {
    if (!figures_.problem.empty()) return {"cannot be read now", Look::Bad};
    if (!figures_.begun) return {"has not begun", Look::Warning};
    const auto& end = figures_.metrics.end;
    if (!live()) {
      return end ? Span{end->status, Look::Bold} : Span{"no live.json ([run] live_seconds)", Look::Warning};
    }
    const double age = figures_.now - live()->written;
    const std::string since = fmt::format("{} ago", human_duration(std::max(0.0, age)));
    if (live()->ended()) {
      const bool bad = live()->state == "diverged" || live()->state == "failed";
      return {fmt::format("{} {} ({})", live()->state, since, at_time(live()->written)), bad ? Look::Bad : Look::Bold};
    }
    const std::string last = fmt::format("last seen {} {} ({})", live()->state, since, at_time(live()->written));
    if (figures_.gone && !figures_.in_sight) return {last + "; cannot be seen from here", Look::Warning};
    if (figures_.gone) return {"not running: " + last, Look::Bad};
    if (age > std::max(3.0, kLate * live()->period)) {
      return {fmt::format("{}, nothing written for {}", live()->state, human_duration(age)), Look::Warning};
    }
    return {live()->state, Look::Good};
  }

  void head() {
    const Span state_now = state();
    ScreenLine title = {{"gyre top ", Look::Dim}};
    const int room = width_ - columns(title[0].text) - columns(state_now.text) - 2;
    title.push_back({shortened(printable(figures_.name), std::max(8, room)), Look::Bold});
    if (room >= 8) {
      justify(title, state_now, width_);
      add(std::move(title));
    } else {
      add(std::move(title));
      add({state_now});
    }
    if (!figures_.problem.empty()) add({{printable(figures_.problem), Look::Bad}});
    if (!figures_.begun) return;
    progress();
    values();
  }

  void progress() {
    const auto& last = figures_.metrics.last;
    const int64_t step = live() ? live()->step : last ? last->step : 0;
    std::vector<std::string> parts;
    if (live() && live()->updates > 0) {
      parts.push_back(fmt::format("update {} of {}", step, live()->updates));
    } else {
      parts.push_back(fmt::format("update {}", step));
    }
    if (const auto speed = tokens_per_second()) parts.push_back(fmt::format("{} tokens/s", human_count(*speed)));
    if (live() && figures_.running() && live()->seconds_left) {
      parts.push_back(fmt::format("ETA {}", human_duration(*live()->seconds_left)));
    }
    if (live()) {
      const double seconds = figures_.metrics.totals.earlier_seconds + live()->seconds;
      parts.push_back(fmt::format("{} so far", human_duration(seconds)));
    }
    ScreenLine line = {{fitting(parts, "  ", width_), Look::Bold}};
    const int room = std::min(60, width_ - columns(line[0].text) - 2);
    if (live() && live()->updates > 0 && room >= 8) {
      line.push_back({"  "});
      line.push_back({bar(static_cast<double>(step) / static_cast<double>(live()->updates), room), Look::Good});
    }
    add(std::move(line));
  }

  // Speed over the last updates while the run is going; over the whole run once it has ended.
  std::optional<double> tokens_per_second() const {
    const TopMetrics& metrics = figures_.metrics;
    if (!figures_.running() && metrics.end && metrics.totals.tokens_per_second) return metrics.totals.tokens_per_second;
    if (live() && live()->tokens_per_second) return live()->tokens_per_second;
    const bool known = !figures_.running() && metrics.last && std::isfinite(metrics.last->tokens_per_second);
    return known ? std::optional(metrics.last->tokens_per_second) : std::nullopt;
  }

  void values() {
    const auto& last = figures_.metrics.last;
    const auto latest = [&](const std::optional<double> LiveRun::*live_field, double MetricsStep::*step_field) {
      if (live() && (*live()).*live_field) return (*live()).*live_field;
      return last ? std::optional((*last).*step_field) : std::nullopt;
    };
    std::vector<std::string> parts = {"loss " + loss_text(latest(&LiveRun::loss, &MetricsStep::loss))};
    const auto validation = live() && live()->val_loss ? live()->val_loss : figures_.metrics.val_loss;
    if (validation) parts.push_back("validation " + loss_text(validation));
    parts.push_back("rate " + number(latest(&LiveRun::lr, &MetricsStep::lr), "{:.3g}"));
    parts.push_back("gradient norm " + number(latest(&LiveRun::grad_norm, &MetricsStep::grad_norm), "{:.3g}"));
    const int64_t tokens = live() ? live()->tokens : last ? last->tokens : 0;
    parts.push_back(fmt::format("{} tokens", human_count(static_cast<double>(tokens))));
    add({{fitting(parts, "  ", width_)}});
  }

  void curve(int lines) {
    if (lines == 0) return;
    const auto& losses = figures_.metrics.losses;
    const auto [low, high] = std::minmax_element(losses.begin(), losses.end(),
                                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string top = loss_text(high->second, 3), bottom = loss_text(low->second, 3);
    const int label = std::max({columns(top), columns(bottom), 4});
    const int room = width_ - label - 1;
    std::vector<double> values;
    for (const auto& [step, loss] : losses) values.push_back(loss);
    const auto drawn = braille_curve(values, std::max(1, room), lines);
    for (int line = 0; line < lines; ++line) {
      const std::string name = line == 0 ? top : line + 1 == lines ? bottom : line == lines / 2 ? "loss" : "";
      add({{fmt::format("{:>{}} ", name, label), Look::Dim}, {drawn[static_cast<size_t>(line)], Look::Good}});
    }
    const std::string from = fmt::format("update {}", losses.front().first);
    ScreenLine axis = {{std::string(static_cast<size_t>(label) + 1, ' ') + from, Look::Dim}};
    justify(axis, {fmt::format("{}", losses.back().first), Look::Dim}, width_);
    add(std::move(axis));
  }

  // The widths of the columns in a worker's row; 0: the column is left out.
  struct Columns {
    int process = 0;  // left out if there is one process
    int bar = 10, action = 6, waits = 0, queue = 0;
  };

  static std::string queue_of(const LiveWorker& worker) {
    std::string text = fmt::format("{}F {}B", worker.activations, worker.gradients);
    if (worker.others > 0) text += fmt::format(" {}+", worker.others);
    return text;
  }
  static std::string doing(const LiveWorker& worker) {
    return worker.action.empty() ? "-" : worker.needs.empty() ? worker.action : "(" + worker.action + ")";
  }

  Columns fit_columns() const {
    Columns columns_now;
    if (live()->processes.size() > 1) columns_now.process = 8;
    for (const LiveWorker& worker : live()->workers) {
      columns_now.action = std::max(columns_now.action, columns(doing(worker)));
      columns_now.queue = std::max(columns_now.queue, columns(queue_of(worker)));
    }
    columns_now.queue = std::max(columns_now.queue, 5);
    const int others = 6 + 1 + columns_now.process + 5 + 2 + columns_now.action + 2 + columns_now.queue + 2;
    const int room = width_ - others;
    columns_now.bar = std::clamp(room / 3, 0, 40);
    if (columns_now.bar < 4) columns_now.bar = 0;
    columns_now.waits = std::max(0, room - columns_now.bar);
    return columns_now;
  }

  static std::string waits_of(const LiveWorker& worker, int width) {
    std::vector<std::string> parts;
    for (const LiveWorker::Wait& wait : worker.waits) {
      const std::string whom = wait.worker < 0 ? "others" : fmt::format("worker {}", wait.worker);
      parts.push_back(fmt::format("{} {}", whom, percent(wait.share)));
    }
    return fitting(parts, ", ", width);
  }

  // The list of workers, with at most `max_rows` of them, below a blank line and a heading.
  void rows(int max_rows) {
    if (!live() || live()->workers.empty()) return;
    const auto& workers = live()->workers;
    screen_.workers = static_cast<int>(workers.size());
    screen_.shown = std::min(max_rows, screen_.workers);
    screen_.first = std::clamp(room_.first, 0, screen_.workers - screen_.shown);
    add({});
    const Columns at = fit_columns();
    const auto padded = [](const std::string& text, int width) {
      return text + std::string(static_cast<size_t>(std::max(0, width - columns(text))), ' ');
    };
    std::string heading = "worker ";
    if (at.process > 0) heading += padded("process", at.process);
    heading += padded("busy", at.bar + 5 + 2) + padded("at", at.action + 2) + padded("queue", at.queue + 2);
    if (at.waits >= 9) heading += "waited for";
    add({{heading, Look::Dim}});
    for (int row = screen_.first; row < screen_.first + screen_.shown; ++row) {
      const LiveWorker& worker = workers[static_cast<size_t>(row)];
      ScreenLine line = {{fmt::format("{:>6} ", worker.worker)}};
      if (at.process > 0) line.push_back({fmt::format("{:>7} ", worker.process)});
      const Look look = worker.busy ? look_of_share(*worker.busy) : Look::Dim;
      if (at.bar > 0) line.push_back({bar(worker.busy.value_or(0), at.bar), look});
      line.push_back({fmt::format("{:>5}  ", worker.busy ? percent(*worker.busy) : "-"), look});
      line.push_back({padded(doing(worker), at.action + 2), worker.needs.empty() ? Look::Bold : Look::Dim});
      line.push_back({padded(queue_of(worker), at.queue + 2)});
      line.push_back({waits_of(worker, at.waits)});
      add(std::move(line));
    }
  }

  // The mean delay of gradients at each stage.
  void stages(std::vector<ScreenLine>& to) const {
    const auto& delays = live() && !live()->delays.empty() ? live()->delays : figures_.metrics.delays;
    if (delays.empty()) return;
    std::vector<std::string> parts;
    for (size_t stage = 0; stage < delays.size(); ++stage) {
      parts.push_back(fmt::format("{}:{}", stage, number(delays[stage], "{:.2f}")));
    }
    to.push_back({});
    to.push_back({{"delay by stage  ", Look::Dim}, {fitting(parts, "  ", width_ - 16)}});
  }

  void memory(std::vector<ScreenLine>& to) const {
    std::vector<std::string> parts;
    if (live()) {
      for (size_t process = 0; process < live()->processes.size(); ++process) {
        const LiveProcess& memory = live()->processes[process];
        if (memory.peak_resident == 0) continue;
        const std::string name = live()->processes.size() > 1 ? fmt::format("{}: ", process) : "";
        std::vector<std::string> kinds = {fmt::format("{}{}, at most {}", name,
                                                      human_bytes(static_cast<double>(memory.resident)),
                                                      human_bytes(static_cast<double>(memory.peak_resident)))};
        if (memory.peak_tensors > 0) {
          kinds.push_back(fmt::format("tensors {}, at most {}", human_bytes(static_cast<double>(memory.tensors)),
                                      human_bytes(static_cast<double>(memory.peak_tensors))));
        }
        const std::string fitted = fitting(kinds, "; ", width_ - 8);
        parts.push_back(fitted.empty() ? kinds.front() : fitted);  // cut where the line is added
      }
    }
    if (parts.empty()) {
      const auto& peaks = figures_.metrics.peak_resident;
      for (size_t process = 0; process < peaks.size(); ++process) {
        const std::string name = peaks.size() > 1 ? fmt::format("{}: ", process) : "";
        if (peaks[process]) parts.push_back(fmt::format("{}at most {}", name, human_bytes(*peaks[process])));
      }
    }
    if (parts.empty()) return;
    constexpr size_t kMaxLines = 4;
    for (size_t process = 0; process < std::min(parts.size(), kMaxLines); ++process) {
      const std::string text = process + 1 == kMaxLines && parts.size() > kMaxLines
                                   ? fmt::format("{} more processes", parts.size() - process)
                                   : parts[process];
      to.push_back({{process == 0 ? "memory  " : "        ", Look::Dim}, {text}});
    }
  }

  void help() {
    std::string text = "q quits";
    if (screen_.shown < screen_.workers) {
      text += fmt::format("  ↑ ↓ PgUp PgDn: workers {} to {} of {}", screen_.first + (screen_.shown > 0 ? 1 : 0),
                          screen_.first + screen_.shown, screen_.workers);
    }
    ScreenLine line = {{cut(text, width_), Look::Dim}};
    justify(line, {"2F17: at work, (2F17): waits", Look::Dim}, width_);
    add(std::move(line));
  }

  const TopFigures& figures_;
  const ScreenRoom& room_;
  int width_;
  Screen screen_;
};

}  // namespace

Screen draw_screen(const TopFigures& figures, const ScreenRoom& room) {
  return Drawing(figures, room).draw();
}

std::string plain_text(const Screen& screen) {
  std::string text;
  for (const ScreenLine& line : screen.lines) {
    std::string whole;
    for (const Span& span : line) whole += span.text;
    text += whole.substr(0, whole.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace gyre
