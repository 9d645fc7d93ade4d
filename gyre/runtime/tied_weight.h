// A weight of a pipeline's first stage that its last stage reads too, while a segment runs: versions go from the first
// stage to the last, and the sums of gradients back. Where no weight is tied, nothing here does anything.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "gyre/runtime/gradient_chain.h"
#include "gyre/runtime/worker_context.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/runtime/worker_state.h"

namespace gyre {

// At the first stage, which has the weight.
class TiedWeightSource {
 public:
  // All arguments must outlive it.
  TiedWeightSource(const Replica& replica, const ReplicaLinks& links, const WorkerContext& worker);

  // Sends the weight of the version that the first stage is about to read, unless it has been sent.
  void send(const WeightVersion& version);

  // The replica's own gradient of a window is complete: it goes on its way through the chain, once that of the last
  // stage has been added to it. The arguments are those of GradientChain::finish.
  void finish(int64_t window, WindowGradient sum, double delay, bool decides, GradientChain& chain);
  // Adds the gradients that have come. Returns whether there were any.
  bool add_gradients(GradientChain& chain);
  bool idle() const { return waiting_.empty(); }

 private:
  struct OwnGradient {
    WindowGradient sum;
    double delay = 0;  // of the first microbatch
    bool decides = false;
  };

  const Replica& replica_;
  const ReplicaLinks& links_;
  const WorkerContext& worker_;
  // Whether the weight is lent instead of copied. Where microbatches in flight hold its old versions anyway, the last
  // stage reads the weight in those; otherwise it gets a copy of that weight alone, so that no whole version need be
  // held for it.
  bool lends_;
  int64_t sent_ = -1;                       // the newest version whose weight was sent
  std::map<int64_t, OwnGradient> waiting_;  // by window
};

// A version of the weight at the last stage.
struct TiedVersion {
  int64_t number = 0;
  at::Tensor weight;
  Lease lease;
};
using TiedReader = std::shared_ptr<const TiedVersion>;

}  // namespace gyre
