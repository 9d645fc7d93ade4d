// What a run's metrics.jsonl says about its training loss.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

struct Curve {
  std::vector<double> loss;        // [update - 1]
  std::vector<double> seconds;     // [update - 1], of training up to there, all sessions together
  std::optional<double> val_loss;  // the last evaluation's
};
// An update whose loss was not finite, and which was therefore left out, counts with the loss before it.
// InputError for a line that cannot be read or steps that are not consecutive.
Curve read_curve(const std::filesystem::path& metrics);
Curve parse_curve(std::string_view metrics, const std::string& origin);
// How the last session ended, or nothing if it did not come to its end.
std::string end_status(const std::filesystem::path& metrics);

// Trailing means: result[i] is the mean of values[i - width + 1 .. i]; shorter at the start.
std::vector<double> smoothed(const std::vector<double>& values, int64_t width);
// The mean of several runs, as far as the shortest goes.
Curve mean_curve(const std::vector<Curve>& curves);
// The first update, counted from 1 and not before `width`, whose smoothed loss is at most `target`.
std::optional<int64_t> first_at_most(const std::vector<double>& smoothed_loss, double target, int64_t width);

}  // namespace gyre
