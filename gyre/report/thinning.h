// Thins a curve for drawing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace gyre {

// Appends the lowest and the highest of a stretch of points that is not empty, in their order.
template <typename Iterator, typename Value, typename Point>
void append_extremes(Iterator begin, Iterator end, Value value, std::vector<Point>& kept) {
  auto [first, second] = std::ranges::minmax_element(begin, end, {}, value);
  if (second < first) std::swap(first, second);
  kept.push_back(*first);
  if (second != first) kept.push_back(*second);
}

// Keeps at most `max_points` points (if it is at least 4): the first and the last, and the lowest and highest of each
// of several equal stretches between. `value` is a member of Point, or a function of one, and never NaN.
template <typename Point, typename Value>
std::vector<Point> thinned(const std::vector<Point>& points, size_t max_points, Value value) {
  if (points.size() <= max_points || max_points < 4) return points;
  const size_t stretches = (max_points - 2) / 2, inner = points.size() - 2;
  std::vector<Point> kept{points.front()};
  for (size_t i = 0; i < stretches; ++i) {
    const auto begin = points.begin() + 1 + static_cast<std::ptrdiff_t>(i * inner / stretches);
    const auto end = points.begin() + 1 + static_cast<std::ptrdiff_t>((i + 1) * inner / stretches);
    append_extremes(begin, end, value, kept);
  }
  kept.push_back(points.back());
  return kept;
}

}  // namespace gyre
