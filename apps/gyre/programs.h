// The two programs. One of your own that calls them after it has added to the registries (core/registry.h) is gyre with
// your schedules, optimizers and models. It may be one program for both, if it is found under both names: it runs the
// engine where is_engine_command says so, and what it adds needs no part without torch.
#pragma once

namespace gyre::app {

int run_gyre(int argc, char** argv);    // gyre.cpp
int run_engine(int argc, char** argv);  // engine.cpp
bool is_engine_command(int argc, char** argv);

}  // namespace gyre::app
