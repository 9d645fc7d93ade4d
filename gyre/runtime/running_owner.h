// An owner of a stage while a segment runs: it gathers the gradients of a window, clips them, updates, and publishes
// the version that the update makes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gyre/runtime/reports.h"
#include "gyre/runtime/worker_context.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/runtime/worker_state.h"

namespace gyre {

class RunningOwner {
 public:
  // Publishes the first version of the segment. beside: [pipeline] the stage's replica on this worker whose weights
  // change at once with the owner's; null: its weights come by message. All arguments must outlive it.
  RunningOwner(StageOwner& owner, const OwnerLinks& links, std::vector<Replica*> beside, WorkerContext& worker);

  // Returns false while the window's gradient is not complete or norms of other owners are missing.
  bool update(const Action& action);
  // Whether the gradient of its next window is complete.
  bool has_gradient() const { return squared_norms_.defined(); }
  // Where other owners wait for this one's norms, sends them as soon as possible, even while the worker's own program
  // waits for something else.
  void gather_early();

 private:
  // A chain's gradient of one window: the sum over its replicas' microbatches, lent by whoever computed it.
  struct ReducedGradient {
    std::vector<at::Tensor> sum;  // one flat tensor, or one per parameter where the schedule's gradients stay whole
    int64_t delay = 0;            // of the first microbatch
    Lease lease;
  };

  bool gather_gradient();
  bool receive_sums();
  void add_sums();
  at::Tensor clip_norm(int64_t window);
  void apply_update(const Action& action, double norm);
  void check_updates_made(const Action& action) const;
  void clip_gradient(double norm, UpdateContext& context);
  void publish(int64_t number);
  WeightReader read() const;

  const Schedule& schedule() const { return worker_.schedule(); }

  StageOwner& owner_;
  const OwnerLinks& links_;
  std::vector<Replica*> beside_;  // [pipeline]
  WorkerContext& worker_;
  int64_t window_ = 0;                                    // the window that it updates next
  std::vector<std::optional<ReducedGradient>> gathered_;  // [pipeline]; of those that send
  // Set once all of them are there: their sum, its tensors by parameter, and the squared norms of these tensors.
  std::optional<ReducedGradient> sum_;
  std::vector<at::Tensor> gradient_;
  at::Tensor squared_norms_;  // undefined: the gradient is not complete
};

}  // namespace gyre
