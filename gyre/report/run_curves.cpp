#include "gyre/report/run_curves.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gyre/report/metrics_reader.h"

namespace gyre {
namespace {

// Raises each element of `maxima` to the value at its index; missing values count as 0.
void update_maxima(std::vector<double>& maxima, const std::vector<std::optional<double>>& values) {
  maxima.resize(std::max(maxima.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i) maxima[i] = std::max(maxima[i], values[i].value_or(0));
}

constexpr std::array<const char*, 4> kStepFields = {"loss", "lr", "grad_norm", "tokens_per_second"};

}  // namespace

std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, size_t max_points) {
  if (points.size() <= max_points || max_points < 4) return points;
  const size_t stretches = (max_points - 2) / 2, inner = points.size() - 2;
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

RunCurves parse_run_curves(std::string_view metrics, const std::string& origin, size_t max_points) {
  RunCurves run;
  std::array<RunCurve, kStepFields.size()> step_curves;
  for (size_t i = 0; i < step_curves.size(); ++i) step_curves[i].name = kStepFields[i];
  std::array<RunCurve, 2> evaluation_curves{{{"val_loss", {}}, {"ema_val_loss", {}}}};
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
      update_maxima(run.peak_tensors, line.reals("peak_tensor_bytes"));
      update_maxima(run.peak_resident, line.reals("peak_resident_bytes"));
    } else if (line.is("delay")) {
      run.delays[line.integer("stage")] = line.counts("histogram");
    } else if (line.is("eval")) {
      at.step = line.step();
      for (RunCurve& curve : evaluation_curves) {
        if (const auto value = line.real(curve.name.c_str())) {
          curve.points.push_back({at.step, at.tokens, at.seconds, *value});
        }
      }
    } else if (line.is("step")) {
      ++run.steps;
      at = {line.step(), line.integer("tokens"), seconds, 0};
      for (RunCurve& curve : step_curves) {
        if (const auto value = line.real(curve.name.c_str())) {
          curve.points.push_back({at.step, at.tokens, at.seconds, *value});
        }
      }
    }
  });
  const auto add = [&](RunCurve& curve) {
    if (!curve.points.empty()) run.curves.push_back({curve.name, thinned(curve.points, max_points)});
  };
  add(step_curves[0]);
  for (RunCurve& curve : evaluation_curves) add(curve);
  for (size_t i = 1; i < step_curves.size(); ++i) add(step_curves[i]);
  return run;
}

}  // namespace gyre
