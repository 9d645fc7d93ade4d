// A schedule, an optimizer and a model from outside the library. A program of one's own registers them first thing in
// main: both programs what they are, and the engine how they are made.
#pragma once

namespace gyre::outside {

void add_kinds();          // kinds.cpp: free of torch, as gyre is
void add_lifo_schedule();  // lifo_schedule.cpp
void add_signum_maker();   // signum_optimizer.cpp
void add_echo_maker();     // echo_model.cpp

}  // namespace gyre::outside
