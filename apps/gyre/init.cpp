// gyre init: a configuration to begin with, and its schema for editors.
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/config/config.h"
#include "output.h"

namespace gyre::app {

void add_init(CLI::App& app) {
  CLI::App* command = app.add_subcommand("init", "Print a configuration with every key, its meaning and its default");
  auto schema = std::make_shared<bool>(false);
  command->add_flag("--schema", *schema, "Print the JSON schema of configurations instead, for editors");
  command->callback([schema] { print("{}", *schema ? config_schema().dump(2) + "\n" : config_template()); });
}

}  // namespace gyre::app
