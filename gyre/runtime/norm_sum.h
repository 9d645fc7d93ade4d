// The norm of several owners' gradients, by which all of them clip: owners send the squared norms of their parameters
// to one of them, which sends back the norm of the whole.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "gyre/runtime/worker_links.h"

namespace gyre {

class NormSum {
 public:
  // The links must outlive it.
  NormSum(const NormSumLinks& links, at::Device device) : links_(links), device_(device) {}

  // Receives the norms that have come. Sends each window's norm to its owners once all of its norms are there. Returns
  // whether any was sent.
  bool pass_on();

 private:
  void receive();

  const NormSumLinks& links_;
  at::Device device_;
  std::map<int64_t, std::vector<at::Tensor>> waiting_;  // squared norms by window, [owner]
};

}  // namespace gyre
