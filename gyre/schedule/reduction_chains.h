// How the gradients of a window come together. Pipelines that follow one another and share no worker, as replicas of
// one pipeline do, run side by side: they make a chain. Each adds its own sum to what has come from the one before and
// passes it on; the first of them adds last and sends the sum to the owner, or each owner its shard of it. So an owner
// receives one sum however long the chain is, and, as sums travel in parts, in little more time.
// Pipelines that share workers send to the owner each by itself: they are at different things, and would keep each
// other waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Elements of a gradient that travel through a chain at once.
inline constexpr int64_t kReductionPart = int64_t{1} << 20;

// [pipeline]: the first of those that it runs side by side with.
std::vector<int> pipelines_side_by_side(const Schedule& schedule);

class ReductionChains {
 public:
  explicit ReductionChains(const Schedule& schedule);  // outlives it

  // The pipeline that adds last in the chain of `pipeline`, and sends to the owners.
  int last(int pipeline) const { return last_[static_cast<size_t>(pipeline)]; }
  bool sends_to_owners(int pipeline) const { return last(pipeline) == pipeline; }
  // Of whom it takes the sum of those before; nothing for the one that begins.
  std::optional<int> previous(int pipeline) const;
  // Of a pipeline that does not send to owners: the next one's worker, whom its sum of the stage goes to.
  int next_worker(int pipeline, int stage) const;
  // How many pipelines pass on, part by part, what it sends, before the last one has it.
  int64_t passed_on_by(int pipeline) const;

 private:
  int end(int pipeline) const;

  const Schedule& schedule_;
  std::vector<int> last_;  // [pipeline]
  std::vector<int> end_;   // [last]: one past the chain's pipelines
};

}  // namespace gyre
