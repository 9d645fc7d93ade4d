// The subcommands. Each adds itself to the application and gives back what to run when it is chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>

namespace gyre::app {

void add_prepare(CLI::App& app);   // prepare.cpp
void add_train(CLI::App& app);     // train.cpp
void add_eval(CLI::App& app);      // eval.cpp
void add_generate(CLI::App& app);  // generate.cpp
void add_info(CLI::App& app);      // info.cpp

// True after the first Ctrl-C (or SIGTERM); the second one ends the process at once. interrupt.cpp
const std::atomic<bool>& install_interrupt_handler();

}  // namespace gyre::app
