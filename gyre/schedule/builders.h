// Builders of schedules and their registry. Each builder is one small file and a line in builders.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/core/options.h"
#include "gyre/core/registry.h"
#include "gyre/schedule/clip_scope.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// The user's names for the options, which errors use: flags and configuration keys are spelled differently.
struct OptionNames {
  std::string stages = "stages", window = "the window", replicas = "replicas", tb_over_tf = "tb_over_tf";
  bool are_flags = false;
  // The name of one of the schedule's own options: "chunks" or "--chunks".
  std::string of(std::string_view key) const;
};

struct ScheduleOptions {
  std::string name = "pipedream";  // one of schedule_names()
  int stages = 1;
  int64_t window = 1;           // microbatches per update, of each replica
  int replicas = 1;             // of the whole pipeline, each on workers of its own
  bool shard_optimizer = true;  // each replica updates a share of every stage; else the first updates all
  double tb_over_tf = 2;        // backward time / forward time, for schedules that search for an order
  OptionTable own = {};         // the schedule's own options; empty: its defaults
  OptionNames names = {};
  bool tied = false;                       // the model's last stage reads a weight of its first
  ClipScope clip_scope = ClipScope::None;  // Global is not checked: see check_clipping()
  bool by_stages = false;  // workers are numbered stage by stage, not replica by replica (worker_order.h)
};

// Which windows suit a schedule.
struct SuitableWindows {
  int64_t usual = 1;        // used if nobody asks for another
  int64_t multiple_of = 1;  // windows must be a multiple of this
  bool takes_all = false;   // the longer the better: each ends with a flush
};

// What others need to know of a schedule before it is built.
struct ScheduleKind {
  std::string name;
  std::string meaning;
  // Of one replica. This and the functions below may be called on several threads at once.
  Schedule (*build)(const ScheduleOptions&);
  SuitableWindows (*windows)(const ScheduleOptions&) = nullptr;    // null: SuitableWindows()
  OptionTable own = {};                                            // its own options, at their defaults
  int64_t (*stages_per_worker)(const OptionTable& own) = nullptr;  // null: 1
  // The values of the schedule's own options that a plan tries on so many workers; null: only the given ones.
  std::vector<OptionTable> (*variants)(int workers, const OptionTable& own) = nullptr;
  // Set by schedule_kinds() for its own: tests prove that what they build is valid. What others build is validated.
  bool is_builtin = false;

  const char* missing() const { return build == nullptr ? "build" : nullptr; }
};
// The builtin kinds and those that the program has added.
Registry<ScheduleKind>& schedule_kinds();
// 1 except for schedules that place several stages on each worker.
int64_t stages_per_worker(const ScheduleKind& kind, const OptionTable& own);
// The names of the schedules that do, for messages: "interleaved-1f1b, ...".
std::string schedules_with_stages_sharing_workers();

// Builds the schedule and its replicas (data_parallel.h). Throws InputError for an unknown name (with the nearest one
// as a suggestion), for options that the schedule cannot serve, and for programs longer than kMostActions. Sizes are
// checked before anything is built. What a kind builds that the program has added is validated; its faults, and
// whatever its builder throws, are InputErrors that name the kind.
Schedule make_schedule(const ScheduleOptions& options);
std::vector<std::string> schedule_names();
// Why no builtin has this name, for messages: "'1f1c' is unknown, ..."; empty if one has.
std::string fault_of_schedule_name(const std::string& name);

Schedule build_forward_only(const Schedule& training);  // forward_only.cpp: evaluation on the same workers
// one_f_one_b.cpp: 1F1B with a window of `microbatches` and a flush, so without delay.
Schedule build_one_window(int stages, int64_t microbatches);

}  // namespace gyre
