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

// Runs `prologue` once, then `period` forever. Each repetition adds `shift` to microbatch numbers and shift / window to
// window numbers. Action numbers in `period` are those of its first repetition.
struct Program {
  std::vector<Action> prologue;
  std::vector<Action> period;
};

// Which weights a forward and its backward read. All forwards start from the newest version.
//   Stash      the backward reads the same version as its forward
//   Latest     the backward reads the version that is newest at that time
//   Predict    the forward moves the version along its last step by the stage's delay, and the backward reads the same
//              weights (XPipe, SpecTrain)
//   Corrected  the backward reads the version that is newest at that time, moved back along the mean step by the
//              stage's mismatch (PipeMare)
enum class WeightPolicy { Stash, Latest, Predict, Corrected };
inline bool reads_latest(WeightPolicy policy) {
  return policy == WeightPolicy::Latest || policy == WeightPolicy::Corrected;
}
std::string_view to_string(WeightPolicy policy);
// nullopt for an unknown name.
std::optional<WeightPolicy> parse_weight_policy(std::string_view name);
// The choices of a user: "auto" (what the schedule or the optimizer was made for), or one of the names above.
std::vector<std::string> weight_choices();

struct Schedule {
  std::string name;
  int stages = 1;
  int pipelines = 1;
  int workers = 1;
  int64_t window = 1;                          // microbatches whose gradients one update applies
  int64_t shift = 1;                           // microbatches per repetition of the periods; a multiple of window
  bool forward_only = false;                   // evaluation: no backward, no update
  WeightPolicy weights = WeightPolicy::Stash;  // default; a run may choose another
  // The last stage shares a weight with the first (tied embeddings). Its forward and backward of a microbatch read the
  // version that the first stage's forward of that microbatch read. Its gradient of a window is added to the first
  // stage's, whose update therefore waits for both.
  bool tied = false;
  // Gradients are clipped by the norm of the whole model's (clip_scope.h): every update of a window waits until the
  // gradients of all stages are complete. Needs a flush.
  bool global_norm = false;
  std::vector<std::vector<int>> placement;  // [pipeline][stage] -> worker
  std::vector<std::vector<int>> owner;      // [shard][stage] -> worker that updates that shard of the stage
  std::vector<Program> programs;            // [worker]

  int worker_of(int pipeline, int stage) const { return placement[pipeline][stage]; }
  int worker_of(const Action& action) const {
    return (action.kind == ActionKind::Update ? owner : placement)[action.pipeline][action.stage];
  }
  int shards() const { return static_cast<int>(owner.size()); }  // parts that each stage's optimizer is cut into
  // Whether one replica computes the whole gradient of a stage and one owner applies it: no sum over pipelines, no
  // shards.
  bool gradients_stay_whole() const { return pipelines == 1 && shards() == 1; }
  // Whether owners add the norms of their gradients before they update: those of the whole model, or of a stage's
  // shards.
  bool sums_norms() const { return !forward_only && (global_norm || shards() > 1); }
  // The stage whose first owner adds the norms of the stage's owners.
  int norms_added_at(int stage) const { return global_norm ? 0 : stage; }
  int pipeline_of(int64_t microbatch) const { return static_cast<int>(microbatch % pipelines); }
  int64_t microbatches_in_window(int pipeline, int64_t window) const;  // can be 0 if window < pipelines
  bool has_flush() const;  // whether every forward comes after the updates of all earlier windows: every delay is 0
};

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Enough microbatches that whatever holds for the restriction to them holds for every longer one: the prologues and a
// few repetitions.
int64_t representative_microbatches(const Schedule& schedule);

// How many actions of a worker's program show all that it ever does: the prologue, repetitions until the last
// microbatch that the prologue forwarded has done its backward, and one more, which all later ones repeat. The schedule
// must be valid.
int64_t representative_actions(const Schedule& schedule, int worker);

// Number of actions of all workers in the restriction to `microbatches`. Repetitions are counted in full, so it may be
// slightly too high. kUnlimited if it does not fit in an int64.
int64_t count_actions(const Schedule& schedule, int64_t microbatches);

// Walks one worker's program, restricted to microbatches < limit. Constant memory. The schedule must outlive it.
// Aligned so that a step touches one cache line: the timeline walks thousands of programs in turn.
class alignas(64) ProgramCursor {
 public:
  ProgramCursor(const Schedule& schedule, int worker, int64_t limit = kUnlimited);

  // The action at the cursor, or nothing when all that remains is at or past the limit.
  const std::optional<Action>& peek() const { return current_; }
  void advance() {
    ++position_;
    // The common case: still within a repetition that lies entirely below the limit.
    if (position_ < whole_end_) {
      take_from_period();
      // By the next turn this program has left the caches, so prefetch what that turn needs.
      __builtin_prefetch(std::min(position_ + kAhead, whole_end_ - 1));
    } else {
      settle();
    }
  }
  // Lowers (never raises) the limit; what has been walked already must lie below it.
  void restrict_to(int64_t limit);
  int64_t limit() const { return limit_; }

 private:
  static constexpr int kAhead = 5;  // actions; two cache lines

  void settle();
  // Sets current_ to the period's action at position_, with this repetition's numbers.
  void take_from_period() {
    current_ = *position_;
    current_->microbatch += current_->is_per_window() ? window_offset_ : microbatch_offset_;
  }

  // Most steps need only these members.
  const Action* position_;             // in the prologue or the period
  const Action* whole_end_ = nullptr;  // end of the period if this repetition lies entirely below the limit, else null
  int64_t microbatch_offset_ = 0, window_offset_ = 0;  // of this repetition
  std::optional<Action> current_;

  int64_t repetition_ = -1;  // -1: in the prologue
  const Schedule& schedule_;
  const Program& program_;
  int64_t limit_;
  int64_t period_first_ = 0;  // lowest number of the last microbatches that the first repetition's actions need
  int64_t period_last_ = 0;   // highest of these numbers
};

// Replicas (pipeline, stage) that take new versions at their own Adopt actions instead of at the owner's Update: those
// of one worker, or of all workers.
std::set<std::pair<int, int>> adopting_replicas(const Schedule& schedule, int worker);
std::set<std::pair<int, int>> adopting_replicas(const Schedule& schedule);
// [pipeline]: whether it has adoptions. If a valid schedule's has, all of its replicas adopt; if not, each is on the
// worker of its stage's owner and changes at the update.
std::vector<bool> adopting_pipelines(const Schedule& schedule);

// An update or adoption after which its worker does a backward of the same window, or of an earlier one.
struct EarlyChange {
  Action change, backward;
};
// The first of a worker's; nullopt if there is none. With a flush and without one of these, updates may wait for the
// gradients of all stages, as clipping by their norm makes them do. With one, the worker would wait for itself.
std::optional<EarlyChange> early_change(const Schedule& schedule);

// Whether any program runs the stage's backward as two separate halves (I and W).
bool splits_backward(const Schedule& schedule, int stage);

// The action that does one part of the microbatch's backward: `half` of it where the stage's program splits that
// backward, otherwise the whole.
Action backward_of(const Schedule& schedule, int pipeline, int stage, int64_t microbatch, ActionKind half);

// [pipeline][stage]: the most microbatches that the replica holds at once: forwarded, but not yet through the backward
// (through W, if the backward is split). Depends only on the order of the worker's program. Walks every program once.
std::vector<std::vector<int64_t>> most_in_flight(const Schedule& schedule);

}  // namespace gyre
