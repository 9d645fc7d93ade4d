// What both programs do with a command line.
// Exit codes: 0 done; 1 failed; 2 bad input, nothing was changed; 3 the run diverged; 4 no room on a disk; 130
// interrupted by Ctrl-C, 143 by SIGTERM or SIGHUP: a run or a study has saved and can be resumed, unless a second
// signal came.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"
#include "gyre/core/process_limits.h"
#include "gyre/core/text.h"
#include "output.h"

namespace gyre::app {
namespace {

// Prints each of several faults on a line of its own.
int fail(const std::string& what, int exit_code) {
  std::string lines;
  for (const char c : what) lines += c == '\n' ? "\n      " : std::string(1, c);
  print_error(lines);
  return exit_code;
}

// CLI11 would only say that a subcommand is required.
void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) return;
  if (argv[1][0] == '-') {
    const std::string flag = argv[1];
    if (flag == "-h" || flag == "--help" || flag == "--version") return;
    throw InputError(fmt::format("unknown flag {}; a command comes first, see gyre --help", printable(flag)));
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  throw InputError(
      fmt::format("there is no command '{}'{}; see gyre --help", printable(argv[1]), suggestion(argv[1], names)));
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

// The form of the help, without what CLI11 would add of its own: the number of values that a positional takes ("(0x)"),
// the value that another name of a flag stands for ("--no-x{false}"), an empty list as default ("=[]").
class Usage final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    for (size_t at = name.find('{'); at != std::string::npos; at = name.find('{')) {
      name.erase(at, name.find('}', at) + 1 - at);
    }
    return name;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string values = CLI::Formatter::make_option_opts(option);
    const size_t at = values.find("=[]");
    if (at != std::string::npos) values.erase(at, 3);
    return values;
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string& text = option->get_option_text();
    const std::string values = option->get_expected_max() > 1 ? " ..." : "";
    const std::string name = text.empty() ? make_option_name(option, true) + values : text;
    return option->get_required() ? name : "[" + name + "]";
  }
};

}  // namespace

void describe_program(CLI::App& app) {
  app.description("gyre trains transformer language models through asynchronous pipelines");
  app.name("gyre");
  app.require_subcommand(1);
  app.set_version_flag("--version", GYRE_VERSION);
  app.formatter(std::make_shared<Usage>());
  app.get_formatter()->column_width(34);
  app.option_defaults()->always_capture_default();
}

int run_command_line(int argc, char** argv, void (*add_commands)(CLI::App&),
                     std::string (*explain)(const std::exception&)) {
  CLI::App app;
  describe_program(app);
  add_commands(app);
  try {
    raise_file_limit();
    check_files_and_stack();
    const int exit_code = run_command(app, argc, argv);
    flush_results();
    return exit_code;
  } catch (const CLI::Error& error) {
    return fail(app::explain(app, error), kBadInput);
  } catch (const ToldElsewhere& end) {
    return end.exit_code();
  } catch (const Error& error) {
    return fail(error.what(), error.exit_code());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(app::explain(error), kBadInput);
  } catch (const std::exception& error) {
    return fail(explain(error), kFailed);
  }
}

}  // namespace gyre::app
