// Proves that a schedule can be executed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// What is wrong with a schedule. Its message names the schedule; who knows the file that it is from names that instead.
class InvalidSchedule : public InputError {
 public:
  InvalidSchedule(const std::string& schedule, std::string fault, std::optional<int> worker)
      : InputError("schedule " + schedule + ": " + fault), fault_(std::move(fault)), worker_(worker) {}
  const std::string& fault() const { return fault_; }
  std::optional<int> worker() const { return worker_; }  // whose program has the fault, if one has

 private:
  std::string fault_;
  std::optional<int> worker_;
};

// Proves for the restriction to `microbatches` (0: the prologues and enough repetitions that the rest follows): every
// action exactly once and on the worker its placement says, dependencies met, every gradient in exactly one update,
// updates in order, activations bounded; and for runs of any length: no cycle across workers, so no deadlock. Throws
// InvalidSchedule naming the first offending action and its worker; for a fault of the order also what it needs, and a
// grid of the actions around it.
void validate(const Schedule& schedule, int64_t microbatches = 0);

}  // namespace gyre
