// A schedule: a placement and one program per worker. Programs are endless and periodic, so a million microbatches cost
// no memory. A run of n microbatches is the *restriction* of the schedule to microbatches < n (n a multiple of the
// window): actions of later microbatches are left out and the order of the rest stays. A restriction of a valid
// schedule is valid, since no action depends on a later microbatch's; that is what makes draining (evaluation,
// checkpoints, Ctrl-C) simple.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gyre/schedule/action.h"

namespace gyre {

// `prologue`, then `period` for ever; each repetition adds `shift` to microbatch numbers, and shift / window to window
// numbers. Action numbers in `period` are those of its first repetition.
struct Program {
  std::vector<Action> prologue;
  std::vector<Action> period;
};

// What a forward and its backward read.
//   Stash      the newest version, and the same again
//   Latest     the newest version, and the one that is newest then
//   Predict    the newest version moved along its last step by the stage's delay, and the same again (XPipe, SpecTrain)
//   Corrected  the newest version, and the one that is newest then, moved back along the mean step by the stage's
//              mismatch (PipeMare)
enum class WeightPolicy { Stash, Latest, Predict, Corrected };
inline bool reads_latest(WeightPolicy policy) {
  return policy == WeightPolicy::Latest || policy == WeightPolicy::Corrected;
}
std::string_view to_string(WeightPolicy policy);
// Nothing for a name that is none.
std::optional<WeightPolicy> parse_weight_policy(std::string_view name);
// What a user may choose: "auto" (what the schedule or the optimizer was made for), or one of the above by name.
std::vector<std::string> weight_choices();

struct Schedule {
  std::string name;
  int stages = 1;
  int pipelines = 1;
  int workers = 1;
  int64_t window = 1;                          // microbatches whose gradients one update applies
  int64_t shift = 1;                           // microbatches per repetition of the periods; a multiple of window
  bool forward_only = false;                   // evaluation: no backward, no update
  WeightPolicy weights = WeightPolicy::Stash;  // unless the run says otherwise
  // The last stage reads a weight of the first (tied embeddings): in forward and backward of a microbatch, the version
  // that the first stage's forward of it read. Its gradient of a window joins the first stage's, whose update so waits
  // for both.
  bool tied = false;
  std::vector<std::vector<int>> placement;  // [pipeline][stage] -> worker
  std::vector<std::vector<int>> owner;      // [shard][stage] -> worker that updates that share of the stage
  std::vector<Program> programs;            // [worker]

  int worker_of(int pipeline, int stage) const { return placement[pipeline][stage]; }
  int worker_of(const Action& action) const {
    return (action.kind == ActionKind::Update ? owner : placement)[action.pipeline][action.stage];
  }
  int shards() const { return static_cast<int>(owner.size()); }  // into which each stage's optimizer is cut
  // Whether a window's gradient of a stage is its owner's as one replica made it: nothing is added to it or cut from
  // it.
  bool gradients_stay_whole() const { return pipelines == 1 && shards() == 1; }
  int pipeline_of(int64_t microbatch) const { return static_cast<int>(microbatch % pipelines); }
  int64_t microbatches_in_window(int pipeline, int64_t window) const;  // 0 is possible in windows shorter than a round
  bool has_flush() const;  // every forward of a window follows every update of the earlier ones: delay is 0 everywhere
};

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Enough microbatches that a property of the restriction to them holds for every longer one: the prologues, and a few
// repetitions.
int64_t representative_microbatches(const Schedule& schedule);

// Actions of a worker's program after which nothing new comes: the prologue, repetitions until the last microbatch that
// the prologue forwarded has gone backward, and one more, which all later ones repeat. Of a valid schedule.
int64_t representative_actions(const Schedule& schedule, int worker);

// Actions of the restriction to `microbatches`, all workers together; a few more where the last repetition is cut
// short. kUnlimited if an int64 does not hold them.
int64_t count_actions(const Schedule& schedule, int64_t microbatches);

// Walks one worker's program, restricted to microbatches < limit. Constant memory. The schedule must outlive it.
// Aligned, since the timeline walks thousands of programs by turns: a step then touches one line of the cache.
class alignas(64) ProgramCursor {
 public:
  ProgramCursor(const Schedule& schedule, int worker, int64_t limit = kUnlimited);

  // The action at the cursor, or nothing when all that remains is at or past the limit.
  const std::optional<Action>& peek() const { return current_; }
  void advance() {
    ++position_;
    // Most actions: further on in a repetition that lies below the limit as a whole.
    if (position_ < whole_end_) {
      take_from_period();
      // The caches hold no program until the next turn: ask for what that needs.
      __builtin_prefetch(std::min(position_ + kAhead, whole_end_ - 1));
    } else {
      settle();
    }
  }
  // Lowers (never raises) the limit; what has been walked already must lie below it.
  void restrict_to(int64_t limit);
  int64_t limit() const { return limit_; }

 private:
  static constexpr int kAhead = 5;  // actions; two lines of a cache

  void settle();
  // current_ becomes the period's action at the position.
  void take_from_period() {
    current_ = *position_;
    current_->microbatch += current_->is_per_window() ? window_offset_ : microbatch_offset_;
  }

  // What most steps need.
  const Action* position_;             // in the prologue, or the period
  const Action* whole_end_ = nullptr;  // of the period, in a repetition that lies below the limit as a whole
  int64_t microbatch_offset_ = 0, window_offset_ = 0;  // of this repetition
  std::optional<Action> current_;

  int64_t repetition_ = -1;  // -1: in the prologue
  const Schedule& schedule_;
  const Program& program_;
  int64_t limit_;
  int64_t period_first_ = 0;  // the earliest microbatch that the first repetition completes an action of
  int64_t period_last_ = 0;   // the latest
};

// Replicas (pipeline, stage) that take every new version at an action of their own, not when the owner makes it: those
// of one worker, or all.
std::set<std::pair<int, int>> adopting_replicas(const Schedule& schedule, int worker);
std::set<std::pair<int, int>> adopting_replicas(const Schedule& schedule);

// Whether a program runs the halves of the stage's backward apart.
bool splits_backward(const Schedule& schedule, int stage);

// The most microbatches that (pipeline, stage) holds at once: forwarded, and not yet through the backward (through W,
// where the backward is split). Follows from the order of its worker's program alone.
int64_t max_in_flight(const Schedule& schedule, int pipeline, int stage);

}  // namespace gyre
