#include "gyre/study/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/report/metrics_reader.h"

namespace gyre {

Curve parse_curve(std::string_view metrics, const std::string& origin) {
  const std::string advice = "remove the run and start the study again";
  Curve curve;
  SessionClock clock;
  for_each_metrics_line(metrics, origin, advice, [&](const MetricsLine& line) {
    const double seconds = clock.at(line);
    if (line.is("eval")) curve.val_loss = line.real("val_loss");
    if (line.is("end") && line.word("status") == "finished" && curve.loss.empty()) {
      throw InputError(fmt::format("{}:{}: the run is finished and has no steps; {}", origin, line.number(), advice));
    }
    if (!line.is("step")) return;
    if (line.step() != static_cast<int64_t>(curve.loss.size()) + 1) {
      throw InputError(fmt::format("{}:{}: steps are not consecutive; {}", origin, line.number(), advice));
    }
    // The loss of a skipped update is null; the previous loss stands for it.
    const double previous = curve.loss.empty() ? std::nan("") : curve.loss.back();
    curve.loss.push_back(line.real("loss").value_or(previous));
    curve.seconds.push_back(seconds);
  });
  // Before the first that is finite there is none to stand for it, and NaN would spoil every mean.
  const auto first = std::ranges::find_if(curve.loss, [](double loss) { return std::isfinite(loss); });
  if (first != curve.loss.end()) std::fill(curve.loss.begin(), first, *first);
  return curve;
}

Curve read_curve(const std::filesystem::path& metrics) {
  return parse_curve(read_file(metrics, kAnyLength), metrics.string());
}

std::string end_status(const std::filesystem::path& metrics) {
  const auto end = read_record(metrics, 0).end;
  return end ? end->status : "";
}

std::vector<double> smoothed(const std::vector<double>& values, int64_t width) {
  // Of blocks of `width` values, a window has the beginning of one and what follows in the one before. Both are summed
  // from values of the window alone: a sum that runs on has lost for good what one huge loss rounds away.
  const size_t block = std::min(static_cast<size_t>(width), values.size());
  std::vector<double> before(block + 1);  // [i]: the sum of values[i] and all after it in the block before
  std::vector<double> result;
  result.reserve(values.size());
  for (size_t begin = 0; begin < values.size(); begin += block) {
    const size_t end = std::min(begin + block, values.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += values[i];
      const size_t length = std::min(i + 1, block);
      result.push_back((before[i + 1 - begin] + sum) / static_cast<double>(length));
    }
    if (end == values.size()) break;
    for (size_t i = block; i-- > 0;) before[i] = before[i + 1] + values[begin + i];
  }
  return result;
}

Curve mean_curve(const std::vector<Curve>& curves) {
  Curve mean;
  if (curves.empty()) return mean;
  size_t length = curves[0].loss.size();
  bool evaluated = true;
  double val_loss = 0;
  const auto count = static_cast<double>(curves.size());
  for (const Curve& curve : curves) {
    length = std::min(length, curve.loss.size());
    evaluated &= curve.val_loss.has_value();
    val_loss += curve.val_loss.value_or(0) / count;
  }
  mean.loss.resize(length);
  mean.seconds.resize(length);
  for (const Curve& curve : curves) {
    for (size_t i = 0; i < length; ++i) {
      mean.loss[i] += curve.loss[i] / count;
      mean.seconds[i] += curve.seconds[i] / count;
    }
  }
  if (evaluated) mean.val_loss = val_loss;
  return mean;
}

std::optional<int64_t> first_at_most(const std::vector<double>& loss, double target, int64_t width) {
  for (auto i = static_cast<size_t>(width) - 1; i < loss.size(); ++i) {
    if (loss[i] <= target) return static_cast<int64_t>(i) + 1;
  }
  return std::nullopt;
}

}  // namespace gyre
