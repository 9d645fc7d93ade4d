#include "gyre/report/run_curves.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gyre/report/metrics_reader.h"

namespace gyre {
namespace {

void keep_most(std::vector<double>& most, const std::vector<std::optional<double>>& values) {
  most.resize(std::max(most.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i) most[i] = std::max(most[i], values[i].value_or(0));
}

constexpr std::array<const char*, 4> kOfSteps = {"loss", "lr", "grad_norm", "tokens_per_second"};

}  // namespace

std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, size_t most) {
  if (points.size() <= most || most < 4) return points;
  const size_t stretches = (most - 2) / 2, inner = points.size() - 2;
  const auto lower = [](const CurvePoint& a, const CurvePoint& b) { return a.value < b.value; };
  std::vector<CurvePoint> kept{points.front()};
  for (size_t i = 0; i < stretches; ++i) {
    const auto begin = points.begin() + 1 + static_cast<std::ptrdiff_t>(i * inner / stretches);
    const auto end = points.begin() + 1 + static_cast<std::ptrdiff_t>((i + 1) * inner / stretches);
    auto [first, second] = std::minmax_element(begin, end, lower);
    if (second < first) std::swap(first, second);
    kept.push_back(*first);
    if (second != first) kept.push_back(*second);
  }
  kept.push_back(points.back());
  return kept;
}

RunCurves parse_run_curves(std::string_view metrics, const std::string& origin, size_t most) {
  RunCurves run;
  std::array<RunCurve, kOfSteps.size()> of_steps;
  for (size_t i = 0; i < of_steps.size(); ++i) of_steps[i].name = kOfSteps[i];
  std::array<RunCurve, 2> of_evaluations{{{"val_loss", {}}, {"ema_val_loss", {}}}};
  CurvePoint at;
  SessionClock clock;
  for_each_metrics_line(metrics, origin, "put back what was there", [&](const MetricsLine& line) {
    run.end.reset();
    const double seconds = clock.at(line);
    if (line.is("end")) {
      run.end = line.end();
    } else if (line.is("resume")) {
      run.delays.clear();
      run.peak_tensors.clear();
      run.peak_resident.clear();
    } else if (line.is("segment")) {
      keep_most(run.peak_tensors, line.reals("peak_tensor_bytes"));
      keep_most(run.peak_resident, line.reals("peak_resident_bytes"));
    } else if (line.is("delay")) {
      run.delays[line.integer("stage")] = line.counts("histogram");
    } else if (line.is("eval")) {
      at.step = line.step();
      for (RunCurve& curve : of_evaluations) {
        if (const auto value = line.real(curve.name.c_str())) {
          curve.points.push_back({at.step, at.tokens, at.seconds, *value});
        }
      }
    } else if (line.is("step")) {
      ++run.steps;
      at = {line.step(), line.integer("tokens"), seconds, 0};
      for (RunCurve& curve : of_steps) {
        if (const auto value = line.real(curve.name.c_str())) {
          curve.points.push_back({at.step, at.tokens, at.seconds, *value});
        }
      }
    }
  });
  const auto add = [&](RunCurve& curve) {
    if (!curve.points.empty()) run.curves.push_back({curve.name, thinned(curve.points, most)});
  };
  add(of_steps[0]);
  for (RunCurve& curve : of_evaluations) add(curve);
  for (size_t i = 1; i < of_steps.size(); ++i) add(of_steps[i]);
  return run;
}

}  // namespace gyre
