// A replica's place in the chain that adds the gradients of a window up (schedule/reduction_chains.h). What it sends is
// lent: a sum travels in the memory of the replica that began it, or in what a transport received it in.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gyre/runtime/gradient_windows.h"
#include "gyre/runtime/shards.h"
#include "gyre/runtime/worker_links.h"
#include "gyre/tensors/buffer_pool.h"

namespace gyre {

class GradientChain {
 public:
  // links: of a replica of `elements` in all; they outlive it. part: elements that travel at once. shards: of its
  // stage, in which owners get the chain's sum.
  GradientChain(const ReplicaLinks& links, at::Device device, int64_t elements, int64_t part, std::vector<Shard> shards)
      : links_(links), device_(device), part_(part), parts_(parts_of(elements, part)), shards_(std::move(shards)) {}

  // The replica's own sum of the window is complete. The delay of the window's first microbatch is the one that counts:
  // `decides` says whether that is the replica's. A gradient that is not flat has a chain and an owner to itself, and
  // goes there by parameter.
  void finish(int64_t window, WindowGradient gradient, double delay, bool decides);
  // Adds the replica's sums to what has come, and passes it on; whether there was anything.
  bool pass_on();
  // Whether all of its sums are on their way.
  bool idle() const { return waiting_.empty(); }

  static int64_t parts_of(int64_t elements, int64_t part) { return (elements + part - 1) / part; }

 private:
  // A sum of its own, and how many parts of it have been added.
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
  std::vector<Shard> shards_;
  std::map<int64_t, Own> waiting_;  // by window, for the sums of those before
};

}  // namespace gyre
