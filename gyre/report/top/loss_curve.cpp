#include "gyre/report/top/loss_curve.h"

#include "gyre/report/thinning.h"

namespace gyre {

void LossCurve::add(LossPoint point) {
  latest_ = point;
  if (kept_.empty()) {
    kept_.push_back(point);
    return;
  }
  last_.push_back(point);
  if (last_.size() < length_) return;
  append_extremes(last_.begin(), last_.end(), &LossPoint::second, kept_);
  last_.clear();
  if (kept_.size() < 1 + 2 * kMostStretches) return;
  length_ *= 2;
  std::vector<LossPoint> fewer{kept_.front()};
  for (auto at = kept_.begin() + 1; at != kept_.end(); at += 4) {
    append_extremes(at, at + 4, &LossPoint::second, fewer);
  }
  kept_ = std::move(fewer);
}

std::vector<LossPoint> LossCurve::points() const {
  std::vector<LossPoint> points = kept_;
  if (!last_.empty()) append_extremes(last_.begin(), last_.end(), &LossPoint::second, points);
  if (!points.empty() && points.back() != latest_) points.push_back(latest_);
  return points;
}

}  // namespace gyre
