// The builtin schedules, one per file. builders.cpp registers them.
#pragma once

#include "gyre/schedule/builders.h"

namespace gyre {

ScheduleKind gpipe();          // gpipe.cpp
ScheduleKind one_f_one_b();    // one_f_one_b.cpp
ScheduleKind interleaved();    // interleaved.cpp
ScheduleKind zb_h1();          // zb_h1.cpp
ScheduleKind zb_v();           // zb_v.cpp
ScheduleKind dualpipe_v();     // dualpipe_v.cpp
ScheduleKind chimera();        // chimera.cpp
ScheduleKind pipedream();      // pipedream.cpp
ScheduleKind pipedream_2bw();  // pipedream_2bw.cpp
ScheduleKind paci();           // paci.cpp
ScheduleKind amdp();           // amdp.cpp

}  // namespace gyre
