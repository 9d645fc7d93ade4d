#include "gyre/runtime/norm_exchange.h"

#include <cmath>
#include <utility>

#include "gyre/optim/clipping.h"

namespace gyre {

NormExchange::NormExchange(int stages, std::vector<std::shared_ptr<Doorbell>> bells)
    : stages_(stages), bells_(std::move(bells)) {}

void NormExchange::give(int stage, int64_t update, std::vector<double> squared_norms) {
  bool complete = false;
  {
    const std::lock_guard lock(mutex_);
    Round& round = rounds_[update];
    round.squared_norms.resize(stages_);
    round.squared_norms[stage] = std::move(squared_norms);
    complete = ++round.given == stages_;
  }
  if (!complete) return;
  for (const auto& bell : bells_) bell->ring();
}

std::optional<double> NormExchange::try_take(int64_t update) {
  const std::lock_guard lock(mutex_);
  const auto found = rounds_.find(update);
  if (found == rounds_.end() || found->second.given < stages_) return std::nullopt;
  Round& round = found->second;
  std::vector<double> all;
  for (const auto& stage : round.squared_norms) all.insert(all.end(), stage.begin(), stage.end());
  const double norm = std::sqrt(combine(all));
  if (++round.taken == stages_) rounds_.erase(found);
  return norm;
}

}  // namespace gyre
