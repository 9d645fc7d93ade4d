#include "gyre/report/run_curves.h"

#include <algorithm>
#include <utility>

#include "gyre/report/thinning.h"

namespace gyre {
namespace {

// Raises each element of `maxima` to the value at its index; missing values count as 0.
void update_maxima(std::vector<double>& maxima, const std::vector<std::optional<double>>& values) {
  maxima.resize(std::max(maxima.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i) maxima[i] = std::max(maxima[i], values[i].value_or(0));
}

}  // namespace

void CurveCollector::take(const MetricsLine& line) {
  rest_.end.reset();
  const double seconds = clock_.at(line);
  totals_.take(line);
  if (line.is("end")) {
    rest_.end = line.end();
  } else if (line.is("resume")) {
    rest_.steps = line.step();
    rest_.delays.clear();
    rest_.peak_tensors.clear();
    rest_.peak_resident.clear();
  } else if (line.is("segment")) {
    update_maxima(rest_.peak_tensors, line.reals("peak_tensor_bytes"));
    update_maxima(rest_.peak_resident, line.reals("peak_resident_bytes"));
  } else if (line.is("delay")) {
    rest_.delays[line.integer("stage")] = line.counts("histogram");
  } else if (line.is("eval")) {
    at_.step = line.step();
    add_points(line, evaluation_curves_);
  } else if (line.is("step")) {
    rest_.steps = line.step();
    at_ = {line.step(), line.integer("tokens"), seconds, 0};
    add_points(line, step_curves_);
  }
}

void CurveCollector::add_points(const MetricsLine& line, std::span<RunCurve> curves) const {
  for (RunCurve& curve : curves) {
    if (const auto value = line.real(curve.name.c_str())) {
      curve.points.push_back({at_.step, at_.tokens, at_.seconds, *value});
    }
  }
}

RunCurves CurveCollector::curves(size_t max_points) const {
  RunCurves run = rest_;
  run.totals = totals_.totals();
  const auto add = [&](const RunCurve& curve) {
    if (curve.points.empty()) return;
    run.curves.push_back({curve.name, thinned(curve.points, max_points, &CurvePoint::value)});
  };
  add(step_curves_[0]);
  for (const RunCurve& curve : evaluation_curves_) add(curve);
  for (size_t i = 1; i < step_curves_.size(); ++i) add(step_curves_[i]);
  return run;
}

RunCurvesReader::RunCurvesReader(std::filesystem::path metrics)
    : follower_(std::move(metrics), "put back what was there") {}

RunCurves RunCurvesReader::read(size_t max_points) {
  follower_.read([this] { collector_ = {}; }, [this](const MetricsLine& line) { collector_.take(line); });
  return collector_.curves(max_points);
}

}  // namespace gyre
