// gyre init: a configuration to begin with.
#include "command.h"
#include "gyre/config/config.h"
#include "output.h"

namespace gyre::app {

void add_init(CLI::App& app) {
  CLI::App* command = app.add_subcommand("init", "Print a configuration with every key, its meaning and its default");
  command->callback([] { print("{}", config_template()); });
}

}  // namespace gyre::app
