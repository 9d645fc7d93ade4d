// A replica's part in the chain that adds up the gradients of a window (schedule/reduction_chains.h). What it sends is
// lent: a sum travels in the memory of the replica that began it, or in the memory that a transport received it into.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "gyre/runtime/gradient_windows.h"
#include "gyre/runtime/shards.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/tensors/buffer_pool.h"

namespace gyre {

class GradientChain {
 public:
  // links: the replica's. elements: size of its gradient. part: elements per message. shards: of its stage; each owner
  // gets its shard of the chain's sum. Links and shards must outlive this.
  GradientChain(const ReplicaLinks& links, at::Device device, int64_t elements, int64_t part,
                const std::vector<Shard>& shards)
      : links_(links), device_(device), part_(part), parts_(parts_of(elements, part)), shards_(shards) {}

  // Call when the replica's own sum of the window is complete. The window's delay is that of its first microbatch;
  // `decides`: whether that microbatch is this replica's. A gradient that is not flat has a chain and an owner to
  // itself, and is sent there by parameter.
  void finish(int64_t window, WindowGradient gradient, double delay, bool decides);
  // Adds the replica's sums to the parts that have come, and passes the results on. Returns whether any part had come.
  bool pass_on();
  // Whether all of its sums have been sent.
  bool idle() const { return waiting_.empty(); }

  static int64_t parts_of(int64_t elements, int64_t part) { return (elements + part - 1) / part; }

 private:
  // The replica's own sum, and how many of its parts have been added to the chain's.
  struct Own {
    PooledBuffer sum;
    double delay = 0;
    bool decides = false;
    int64_t added = 0;
  };
  bool add_part(int64_t window, Own& own);
  bool is_last() const { return !links_.reductions; }
  void send_shards(int64_t window, const Own& own);
  void send_parts(int64_t window, const Own& own);
  at::Tensor part_of(const PooledBuffer& sum, int64_t number) const;

  const ReplicaLinks& links_;
  at::Device device_;
  int64_t part_, parts_;
  const std::vector<Shard>& shards_;
  std::map<int64_t, Own> waiting_;  // by window: sums that wait for those of earlier replicas
};

}  // namespace gyre
