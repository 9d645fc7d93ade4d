// gyre: the command line.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "command.h"
#include "gyre/core/error.h"
#include "output.h"

namespace {

void add_commands(CLI::App& app) {
  gyre::app::add_init(app);
  gyre::app::add_prepare(app);
  gyre::app::add_schedule(app);
  gyre::app::add_simulate(app);
  gyre::app::add_study(app);
  // For the list in --help; main() never lets the parser see one of these.
  for (const auto& [name, meaning] : gyre::app::kEngineCommands) app.add_subcommand(name, meaning);
}

bool is_engine_command(std::string_view word) {
  for (const auto& command : gyre::app::kEngineCommands) {
    if (word == command.name) return true;
  }
  return false;
}

// Returns only if the engine cannot be started.
int become_engine(char** argv) {
  std::filesystem::path program;
  try {
    program = gyre::app::engine_program();
  } catch (const gyre::Error& error) {
    gyre::app::print_error(error.what());
    return error.exit_code();
  }
  ::execv(program.c_str(), argv);
  gyre::app::print_error(
      fmt::format("{} cannot be started: {}; build or install gyre again", program.string(), std::strerror(errno)));
  return 1;
}

}  // namespace

namespace gyre::app {

int run_gyre(int argc, char** argv) {
  open_standard_streams();
  if (argc > 1 && is_engine_command(argv[1])) return become_engine(argv);
  return run_command_line(argc, argv, add_commands);
}

}  // namespace gyre::app
