// Registers a schedule, an optimizer and a model from outside the library; each is in the file named here.
#pragma once

namespace gyre::outside {

void add_lifo();    // lifo_schedule.cpp
void add_signum();  // signum_optimizer.cpp
void add_echo();    // echo_model.cpp

}  // namespace gyre::outside
