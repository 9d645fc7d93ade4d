#include "gyre/runtime/gradient_chain.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace gyre {

void GradientChain::finish(int64_t window, WindowGradient gradient, double delay, bool decides) {
  if (!gradient.flat) {
    send_from(device_, *links_.sums[0], {window, std::move(gradient.tensors), {delay}, {}});
    return;
  }
  Own own{std::move(gradient.flat), delay, decides};
  if (links_.earlier_sums) {
    waiting_.emplace(window, std::move(own));
    pass_on();
  } else if (is_last()) {
    send_shards(window, own);
  } else {
    send_parts(window, own);
  }
}

bool GradientChain::pass_on() {
  bool any = false;
  while (!waiting_.empty()) {
    auto& [window, own] = *waiting_.begin();
    while (own.added < parts_ && add_part(window, own)) any = true;
    if (own.added < parts_) return any;
    if (is_last()) send_shards(window, own);
    waiting_.erase(waiting_.begin());
  }
  return any;
}

// Adds the window's next part, if it has come. The last replica of the chain keeps the sum, all others pass it on.
bool GradientChain::add_part(int64_t window, Own& own) {
  const int64_t number = window * parts_ + own.added;
  auto message = arrived_on(device_, links_.earlier_sums->try_receive(number));
  if (!message) return false;
  if (!own.decides) own.delay = message->values[0];
  const at::Tensor earlier = std::move(message->tensors[0]), mine = part_of(own.sum, own.added);
  ++own.added;
  if (is_last()) {
    mine.add_(earlier);
  } else {
    earlier.add_(mine);
    send_from(device_, *links_.reductions, {number, {earlier}, {own.delay}, std::move(message->lease)});
  }
  return true;
}

// Each owner gets a lease of its own, which it ends when it has read its shard.
void GradientChain::send_shards(int64_t window, const Own& own) {
  for (size_t i = 0; i < shards_.size(); ++i) {
    const at::Tensor shard = own.sum->flat.narrow(0, shards_[i].offset, shards_[i].elements);
    send_from(device_, *links_.sums[i], {window, {shard}, {own.delay}, own.sum.lend()});
  }
}

void GradientChain::send_parts(int64_t window, const Own& own) {
  const Lease lease = own.sum.lend();
  for (int64_t number = 0; number < parts_; ++number) {
    send_from(device_, *links_.reductions, {window * parts_ + number, {part_of(own.sum, number)}, {own.delay}, lease});
  }
}

at::Tensor GradientChain::part_of(const PooledBuffer& sum, int64_t number) const {
  const int64_t begin = number * part_;
  return sum->flat.narrow(0, begin, std::min(part_, sum->flat.numel() - begin));
}

}  // namespace gyre
