// The sum of the norms that several owners clip by: owners send the squared norms of their parameters to one of them,
// which sends back the norm of all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "gyre/runtime/worker_links.h"

namespace gyre {

class NormSum {
 public:
  // The links outlive it.
  NormSum(const NormSumLinks& links, at::Device device) : links_(links), device_(device) {}

  // Takes the norms that have come, and sends their owners the norm of each window once all of its are there. Returns
  // whether any was sent.
  bool pass_on();

 private:
  void receive();

  const NormSumLinks& links_;
  at::Device device_;
  std::map<int64_t, std::vector<at::Tensor>> waiting_;  // squared norms by window, [owner]
};

}  // namespace gyre
