// What actions, messages and memory cost. Times are in seconds or, where nothing was measured, in forwards of one
// stage.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/schedule/message_kind.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// Costs of one microbatch at one stage (the update: of one window, all shards together).
struct StageCost {
  double forward = 1, backward = 2;
  double backward_input = 1, backward_weights = 1;  // where a schedule splits the backward
  double update = 0, adopt = 0;
  int64_t output_bytes = 0;      // sent by a forward; its gradient is as large
  int64_t activation_bytes = 0;  // held between forward and backward
  int64_t split_bytes = 0;       // held besides between the halves of a split backward
  int64_t passing_bytes = 0;     // the most that one forward or backward holds besides
  int64_t update_bytes = 0;      // the most that one update holds besides
  // In a window's first backward: bytes of gradients that take the place of activations it has released, where
  // gradients stay whole (Schedule::gradients_stay_whole).
  int64_t replaced_bytes = 0;
  int64_t weight_bytes = 0;     // one version of the weights, as layers read them
  int64_t gradient_bytes = 0;   // accumulators of one window; a replica sends as much
  int64_t optimizer_bytes = 0;  // at the owner: masters and moments
  // Of a tied weight: what the first stage sends per version, and the last stage per gradient.
  int64_t tied_bytes = 0;
  bool operator==(const StageCost&) const = default;
};

// A message from one worker to another takes latency + bytes / bandwidth; messages on one directed link queue.
struct LinkCost {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();  // bytes per unit of time
  bool operator==(const LinkCost&) const = default;
};

struct CostModel {
  std::vector<StageCost> stages;  // one entry serves all stages
  LinkCost link;
  int64_t tokens_per_microbatch = 0;  // 0: unknown
  double checkpoint = 0;              // time for which a checkpoint keeps all workers waiting; 0: unknown

  const StageCost& stage(int number) const { return stages.size() == 1 ? stages[0] : stages[number]; }
  double duration(const Action& action) const;
  int64_t message_bytes(MessageKind kind, int stage) const;  // of whole stages; a shard's are smaller
  bool operator==(const CostModel&) const = default;
};

// A forward takes 1 at every stage, a backward `tb_over_tf` (its halves half of that), messages and updates nothing.
CostModel uniform_costs(double tb_over_tf);

// The JSON form is described in docs/simulation.md. InputError says what is wrong and where.
std::string to_json(const CostModel& costs);
CostModel parse_costs(std::string_view json, const std::string& origin);
// Reads a file or, given the directory of a run, its measured costs.json.
CostModel load_costs(const std::filesystem::path& path);
// Throws InputError if the model is for another number of stages, a number is negative or not finite (a bandwidth may
// be infinite), or its sizes are more than any memory holds.
void check_costs(const CostModel& costs, const Schedule& schedule);

}  // namespace gyre
