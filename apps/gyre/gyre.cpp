// gyre: the command line.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "command.h"
#include "gyre/core/error.h"
#include "interrupts.h"
#include "output.h"

namespace {

void add_commands(CLI::App& app) {
  gyre::app::add_gyre_commands(app);
  // For the list in --help. The parser never sees one of these commands: run_gyre() starts the engine for them.
  for (const auto& [name, meaning] : gyre::app::kEngineCommands) app.add_subcommand(name, meaning);
}

// Returns only if the engine cannot be started.
int become_engine(char** argv) {
  std::filesystem::path program;
  try {
    program = gyre::app::engine_program(argv[1]);
  } catch (const gyre::Error& error) {
    gyre::app::print_error(error.what());
    return error.exit_code();
  }
  gyre::app::hold_signals();
  ::execv(program.c_str(), argv);
  const int error = errno;
  gyre::app::print_error(
      fmt::format("{} cannot be started: {}; build or install gyre again", program.string(), std::strerror(error)));
  return 1;
}

}  // namespace

namespace gyre::app {

void add_gyre_commands(CLI::App& app) {
  add_init(app);
  add_prepare(app);
  add_schedule(app);
  add_simulate(app);
  add_study(app);
  add_report(app);
  add_serve(app);
  add_top(app);
  add_launch(app);
}

bool is_engine_command(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  return std::ranges::any_of(kEngineCommands, [&](const CommandName& command) { return word == command.name; });
}

int run_gyre(int argc, char** argv) {
  open_standard_streams();
  heed_hangup();
  if (is_engine_command(argc, argv)) return become_engine(argv);
  return run_command_line(argc, argv, add_commands);
}

}  // namespace gyre::app
