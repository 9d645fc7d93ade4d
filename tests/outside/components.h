// Registers schedules, an optimizer and a model from outside the library, in the files named here.
#pragma once

namespace gyre::outside {

void add_lifo();    // lifo_schedule.cpp
void add_signum();  // signum_optimizer.cpp
void add_echo();    // echo_model.cpp
void add_faulty();  // faulty_components.cpp

}  // namespace gyre::outside
