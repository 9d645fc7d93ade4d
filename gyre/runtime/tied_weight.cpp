#include "gyre/runtime/tied_weight.h"

#include <ATen/ATen.h>

#include <utility>

namespace gyre {
namespace {

// A version has one lease, and the pool waits only for the stream of the holder that ends it. So on a device with
// streams the weight is copied.
bool may_lend(const ReplicaLinks& links, const WorkerContext& worker) {
  return links.tied_weights && !reads_latest(worker.options.weights) && !worker.schedule().has_flush() &&
         !has_streams(worker.device);
}

}  // namespace

TiedWeightSource::TiedWeightSource(const Replica& replica, const ReplicaLinks& links, const WorkerContext& worker)
    : replica_(replica), links_(links), worker_(worker), lends_(may_lend(links, worker)) {}

void TiedWeightSource::send(const WeightVersion& version) {
  if (!links_.tied_weights || sent_ == version.number) return;
  sent_ = version.number;
  const at::Tensor& weight = version.buffer.tensors[*replica_.shared];
  Message message{version.number, {}, {}, {}};
  if (lends_) {
    message.tensors = {weight};
    message.lease = version.lease;
  } else {
    message.tensors = {weight.clone()};
  }
  send_from(worker_.device, *links_.tied_weights, std::move(message));
}

void TiedWeightSource::finish(int64_t window, WindowGradient sum, double delay, bool decides, GradientChain& chain) {
  if (!links_.tied_sums) {
    chain.finish(window, std::move(sum), delay, decides);
    return;
  }
  waiting_.emplace(window, OwnGradient{std::move(sum), delay, decides});
  add_gradients(chain);
}

// The weight's gradient is the sum of the first stage's and the last stage's, each summed over the window by itself, so
// that the bits do not depend on the partition.
bool TiedWeightSource::add_gradients(GradientChain& chain) {
  bool any = false;
  for (; !waiting_.empty(); any = true) {
    auto& [window, own] = *waiting_.begin();
    const auto message = arrived_on(worker_.device, links_.tied_sums->try_receive(window));
    if (!message) break;
    own.sum.tensors[*replica_.shared].add_(message->tensors[0]);
    chain.finish(window, std::move(own.sum), own.delay, own.decides);
    waiting_.erase(waiting_.begin());
  }
  return any;
}

}  // namespace gyre
