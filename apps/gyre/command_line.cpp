// What both programs do with a command line.
// Exit codes: 0 done; 1 failed; 2 bad input, nothing was changed; 3 the run diverged; 130 interrupted, and a run or a
// study has saved and can be resumed.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "output.h"

namespace gyre::app {
namespace {

// Several faults are a line each, below one another.
int fail(std::string what, int exit_code) {
  for (size_t end = what.find('\n'); end != std::string::npos; end = what.find('\n', end + 1))
    what.insert(end + 1, 6, ' ');
  print_error(what);
  return exit_code;
}

// CLI11 says no more than that a subcommand is required.
void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  throw InputError(fmt::format("there is no command '{}'{}", argv[1], suggestion(argv[1], names)));
}

int run_command(CLI::App& app, int argc, char** argv) {
  try {
    check_command(app, argc, argv);
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream text;
    const int exit_code = app.exit(request, text, text);
    print_text(text.str());
    return exit_code;
  } catch (const CLI::RuntimeError& end) {
    return end.get_exit_code();
  }
}

}  // namespace

int run_command_line(int argc, char** argv, void (*add_commands)(CLI::App&)) {
  CLI::App app{"gyre trains transformer language models through asynchronous pipelines"};
  app.name("gyre");
  app.require_subcommand(1);
  app.set_version_flag("--version", GYRE_VERSION);
  app.get_formatter()->column_width(34);
  app.option_defaults()->always_capture_default();
  add_commands(app);
  try {
    const int exit_code = run_command(app, argc, argv);
    flush_results();
    return exit_code;
  } catch (const CLI::Error& error) {
    return fail(fmt::format("{}; see gyre --help", error.what()), 2);
  } catch (const Error& error) {
    return fail(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return fail("out of memory; make microbatch, context or the model smaller", 1);
  } catch (const std::exception& error) {
    return fail(fmt::format("unexpected failure: {}", error.what()), 1);
  }
}

}  // namespace gyre::app
