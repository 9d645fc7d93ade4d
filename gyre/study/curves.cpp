#include "gyre/study/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// Calls visit(object, line number) for every line of the file.
template <typename Visit>
void for_each_line(const std::filesystem::path& path, Visit&& visit) {
  std::ifstream file(path);
  if (!file) throw InputError(fmt::format("{}: cannot be read; run the study again", path.string()));
  std::string text;
  for (int64_t number = 1; std::getline(file, text); ++number) {
    const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (line.is_discarded() || !line.is_object()) {
      throw InputError(
          fmt::format("{}:{}: not a line of metrics; remove the run and start the study again", path.string(), number));
    }
    visit(line, number);
  }
}

}  // namespace

Curve read_curve(const std::filesystem::path& metrics) {
  Curve curve;
  double before = 0, last = 0;  // seconds: of earlier sessions, and the last seen in this one
  for_each_line(metrics, [&](const nlohmann::json& line, int64_t number) {
    const std::string event = line.value("event", "");
    if (event == "eval" && line["val_loss"].is_number()) curve.val_loss = line["val_loss"].get<double>();
    if (event != "step") return;
    if (line.value("step", int64_t{0}) != static_cast<int64_t>(curve.loss.size()) + 1) {
      throw InputError(fmt::format("{}:{}: steps are not consecutive; remove the run and start the study again",
                                   metrics.string(), number));
    }
    const double seconds = line.value("seconds", 0.0);
    if (seconds < last) before += last;  // a resumed run counts from its session's start
    last = seconds;
    // The loss of an update that was left out is null: it counts as the one before.
    const double before_it = curve.loss.empty() ? std::nan("") : curve.loss.back();
    curve.loss.push_back(line["loss"].is_number() ? line["loss"].get<double>() : before_it);
    curve.seconds.push_back(before + seconds);
  });
  return curve;
}

std::string end_status(const std::filesystem::path& metrics) {
  std::ifstream file(metrics);
  std::string text, last;
  while (std::getline(file, text)) last = text.empty() ? last : text;
  const auto line = nlohmann::json::parse(last, nullptr, /*allow_exceptions=*/false);
  if (line.is_discarded() || !line.is_object() || line.value("event", "") != "end") return "";
  return line.value("status", "");
}

std::vector<double> smoothed(const std::vector<double>& values, int64_t window) {
  std::vector<double> result;
  result.reserve(values.size());
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    const auto width = static_cast<size_t>(window);
    if (i >= width) sum -= values[i - width];
    result.push_back(sum / static_cast<double>(std::min(i + 1, width)));
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

std::optional<int64_t> first_at_most(const std::vector<double>& loss, double target, int64_t window) {
  for (auto i = static_cast<size_t>(window) - 1; i < loss.size(); ++i) {
    if (loss[i] <= target) return static_cast<int64_t>(i) + 1;
  }
  return std::nullopt;
}

}  // namespace gyre
