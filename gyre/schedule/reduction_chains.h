// How the gradients of a window are summed. Consecutive pipelines that share no worker, such as replicas of one
// pipeline, run side by side and form a chain. Each adds its own sum to the one it receives and passes the result on;
// the first of them adds last and sends the total to the owner, or to each owner its shard. So an owner receives one
// sum however long the chain is, and hardly later, since sums travel in parts.
// Pipelines that share workers each send to the owner directly: they are at different points of their programs and
// would keep each other waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

// Elements of a gradient that travel through a chain as one part.
inline constexpr int64_t kReductionPart = int64_t{1} << 20;

// [pipeline]: the first of the pipelines that it runs side by side with, possibly itself.
std::vector<int> pipelines_side_by_side(const Schedule& schedule);

class ReductionChains {
 public:
  explicit ReductionChains(const Schedule& schedule);  // must outlive this object

  // The pipeline that adds last in the chain of `pipeline`, and sends to the owners.
  int last(int pipeline) const { return last_[static_cast<size_t>(pipeline)]; }
  bool sends_to_owners(int pipeline) const { return last(pipeline) == pipeline; }
  // The pipeline that it receives a sum from; nullopt for the one that begins the chain.
  std::optional<int> previous(int pipeline) const;
  // For a pipeline that does not send to owners: the worker of the next pipeline, which gets its sum of the stage.
  int next_worker(int pipeline, int stage) const;
  // How many pipelines pass on, part by part, what `pipeline` sends, before the last one has it; 0 if it sends to
  // owners.
  int64_t passed_on_by(int pipeline) const;

 private:
  int end(int pipeline) const;

  const Schedule& schedule_;
  std::vector<int> last_;  // [pipeline]
  std::vector<int> end_;   // [last]: one past the chain's highest pipeline
};

}  // namespace gyre
