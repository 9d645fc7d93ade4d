// Global clipping: every stage of a schedule with a flush gives the squared norms of its gradients and gets the norm of
// the whole model's. The sum runs over parameters in model order whatever the partition, so the result is the same to
// the bit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gyre/runtime/doorbell.h"

namespace gyre {

class NormExchange {
 public:
  NormExchange(int stages, std::vector<std::shared_ptr<Doorbell>> bells);

  // Once per stage and update: one squared norm per parameter.
  void give(int stage, int64_t update, std::vector<double> squared_norms);
  // The norm of all stages' gradients, once all have given theirs. Each stage takes it once; then it is forgotten.
  std::optional<double> try_take(int64_t update);

 private:
  struct Round {
    std::vector<std::vector<double>> squared_norms;  // [stage]
    int given = 0;
    int taken = 0;
  };
  int stages_;
  std::vector<std::shared_ptr<Doorbell>> bells_;
  std::mutex mutex_;
  std::map<int64_t, Round> rounds_;  // by update
};

}  // namespace gyre
