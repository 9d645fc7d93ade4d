// make_pages OUT: man pages, completions and schemas, from what the programs declare. The build runs it.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "declared.h"
#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/study/study.h"
#include "output.h"

int main(int argc, char** argv) {
  using namespace gyre::app;
  if (argc != 2) {
    print_error("make_pages: give the directory to write into");
    return 2;
  }
  try {
    CLI::App app;
    describe_program(app);
    add_gyre_commands(app);
    add_engine_commands(app);
    const auto commands = declared_commands(app);
    const std::filesystem::path out = argv[1];
    gyre::make_directories(out);
    gyre::write_file_atomic(out / "gyre.1", man_page(commands));
    gyre::write_file_atomic(out / "gyre-engine.1", ".so man1/gyre.1\n");
    for (const DeclaredCommand& command : commands) {
      gyre::write_file_atomic(out / ("gyre-" + command.name + ".1"), man_page(command));
    }
    gyre::write_file_atomic(out / "gyre.bash", bash_completion(commands));
    gyre::write_file_atomic(out / "_gyre", zsh_completion(commands));
    gyre::write_file_atomic(out / "gyre.fish", fish_completion(commands));
    gyre::write_file_atomic(out / "gyre.schema.json", gyre::config_schema().dump(2) + "\n");
    gyre::write_file_atomic(out / "gyre-study.schema.json", gyre::study_schema().dump(2) + "\n");
  } catch (const gyre::Error& error) {
    print_error(error.what());
    return error.exit_code();
  }
  return 0;
}
