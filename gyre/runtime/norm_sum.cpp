#include "gyre/runtime/norm_sum.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "gyre/optim/clipping.h"

namespace gyre {

// The sum runs over parameters in the model's order whatever the partition and the shards, so the bits do not depend on
// them.
bool NormSum::pass_on() {
  receive();
  bool any = false;
  for (; !waiting_.empty(); any = true) {
    const auto& [window, norms] = *waiting_.begin();
    if (!std::all_of(norms.begin(), norms.end(), [](const at::Tensor& own) { return own.defined(); })) break;
    const at::Tensor norm = whole_norm(norms);
    for (const auto& sum : links_.sums) send_from(device_, *sum, {window, {norm}, {}, {}});
    waiting_.erase(waiting_.begin());
  }
  return any;
}

void NormSum::receive() {
  for (size_t owner = 0; owner < links_.norms.size(); ++owner) {
    while (auto message = arrived_on(device_, links_.norms[owner]->try_receive())) {
      auto& norms = waiting_[message->number];
      norms.resize(links_.norms.size());
      norms[owner] = std::move(message->tensors[0]);
    }
  }
}

}  // namespace gyre
