// Builders: one small file each, found by name.
#pragma once

#include <string>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

// What the user calls the options; errors speak of them so. Flags and configurations have their own names.
struct OptionNames {
  std::string stages = "stages", window = "the window", chunks = "chunks", pipelines = "the pipelines",
              intake = "intake", tb_over_tf = "tb_over_tf", preload = "preload";
};

struct ScheduleOptions {
  std::string name = "pipedream";  // one of schedule_names()
  int stages = 1;
  int64_t window = 1;     // microbatches per update
  int chunks = 2;         // interleaved-1f1b: stages on each worker
  int pipelines = 0;      // amdp: 0 takes what the depth calls for
  int intake = 2;         // amdp: microbatches of one pipeline in a block
  double tb_over_tf = 2;  // amdp, chimera: time of a backward in forwards, by which conflicts are ordered
  int preload = -1;       // amdp: forwards of the next block before the last backward; -1: derived from tb_over_tf
  OptionNames names = {};
};

// Errors: InputError for an unknown name (suggests the nearest), for options the schedule cannot serve, and for
// programs longer than kMostActions; all before anything is built.
Schedule make_schedule(const ScheduleOptions& options);
std::vector<std::string> schedule_names();

Schedule build_gpipe(const ScheduleOptions& options);          // gpipe.cpp
Schedule build_one_f_one_b(const ScheduleOptions& options);    // one_f_one_b.cpp
Schedule build_interleaved(const ScheduleOptions& options);    // interleaved.cpp
Schedule build_zb_h1(const ScheduleOptions& options);          // zb_h1.cpp
Schedule build_chimera(const ScheduleOptions& options);        // chimera.cpp
Schedule build_pipedream(const ScheduleOptions& options);      // pipedream.cpp
Schedule build_pipedream_2bw(const ScheduleOptions& options);  // pipedream_2bw.cpp
Schedule build_paci(const ScheduleOptions& options);           // paci.cpp
Schedule build_amdp(const ScheduleOptions& options);           // amdp.cpp
Schedule build_forward_only(const Schedule& training);         // forward_only.cpp: evaluation on the same workers

}  // namespace gyre
