// The two programs. A program of your own that calls these functions after adding to the registries (core/registry.h)
// is gyre with your schedules, optimizers and models. It may be one program for both, if it can be found under both
// names and runs the engine when is_engine_command() says so; what it adds then need not be split into parts with and
// without torch.
#pragma once

namespace gyre::app {

int run_gyre(int argc, char** argv);    // gyre.cpp
int run_engine(int argc, char** argv);  // engine.cpp
bool is_engine_command(int argc, char** argv);

}  // namespace gyre::app
