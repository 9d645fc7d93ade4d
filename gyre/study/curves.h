// Loss curves of runs, read from metrics.jsonl, and operations on them.
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
  std::vector<double> seconds;     // [update - 1]: training time up to this update, over all sessions
  std::optional<double> val_loss;  // of the last evaluation; empty if it is not finite
};
// An update whose loss was not finite (it was skipped) gets the loss of the update before it; at the start, the first
// that is finite.
// Throws InputError for a line that cannot be read and for steps that are not consecutive.
Curve read_curve(const std::filesystem::path& metrics);
Curve parse_curve(std::string_view metrics, const std::string& origin);
// How the last session ended; "" if it did not record an end.
std::string end_status(const std::filesystem::path& metrics);

// Trailing means: result[i] is the mean of values[i - width + 1 .. i], or of values[0 .. i] at the start.
std::vector<double> smoothed(const std::vector<double>& values, int64_t width);
// The mean of several runs, as long as the shortest. Has a val_loss if all of them have one.
Curve mean_curve(const std::vector<Curve>& curves);
// The first update, counted from 1 and not before `width`, whose smoothed loss is at most `target`.
std::optional<int64_t> first_at_most(const std::vector<double>& smoothed_loss, double target, int64_t width);

}  // namespace gyre
