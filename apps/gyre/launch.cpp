// gyre launch -n N -- train ...: one run as several processes of this host; and measure-links.
#include "gyre/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/launch/rank.h"
#include "measure_links_flags.h"
#include "number_flag.h"
#include "output.h"
#include "train_flags.h"

namespace gyre::app {
namespace {

constexpr int64_t kMaxRanks = 4096;

struct Flags {
  int64_t ranks = 0;
  int64_t max_restarts = 0;
  std::string logs;
  std::vector<std::string> words;
};

// Parses the words after -- as the command would, so that a wrong word is one line of one process. Returns false for
// --help.
template <typename Declare>
bool read_words(const CommandName& name, std::vector<std::string> words, Declare&& declare) {
  CLI::App app;
  describe_program(app);
  declare(*app.add_subcommand(name.name, name.meaning));
  std::ranges::reverse(words);  // the order that CLI11 takes
  try {
    app.parse(words);
  } catch (const CLI::Success& request) {
    std::ostringstream text;
    app.exit(request, text, text);
    print_text(text.str());
    return false;
  } catch (const CLI::Error& error) {
    throw InputError(explain(app, error));
  }
  return true;
}

// A command for several processes: the words that it is started with, and those to go on with after a failure.
struct Launched {
  std::vector<std::string> first, again;
};

// Empty if there is nothing to launch.
std::optional<Launched> launched_train(const std::vector<std::string>& words) {
  TrainFlags flags;
  if (!read_words(kTrain, words, [&](CLI::App& command) { declare_train_flags(command, flags); })) return std::nullopt;
  if (flags.check || flags.help_config) {
    throw InputError(fmt::format("train {} needs only one process; leave out gyre launch and its flags",
                                 flags.check ? "--check" : "--help-config"));
  }
  place_of(flags);
  Launched launched{words, words};
  if (!flags.resume) launched.again.emplace_back("--resume");
  return launched;
}

std::optional<Launched> launched_measure_links(const std::vector<std::string>& words) {
  MeasureLinksFlags flags;
  const auto declare = [&](CLI::App& command) { declare_measure_links_flags(command, flags); };
  if (!read_words(kMeasureLinks, words, declare)) return std::nullopt;
  return Launched{words, words};
}

std::optional<Launched> read_command(const std::vector<std::string>& words) {
  if (words.front() == kTrain.name) return launched_train(words);
  if (words.front() == kMeasureLinks.name) return launched_measure_links(words);
  throw InputError(fmt::format("'{}' does not run as several processes; {} and {} do", printable(words.front()),
                               kTrain.name, kMeasureLinks.name));
}

// Requires --, so that flags for launch cannot be confused with flags for the command.
void check_separated(const CLI::App& command, const std::vector<std::string>& words) {
  const std::vector<std::string> not_ours = command.remaining();
  if (words.empty() || std::ranges::find(not_ours, "--") == not_ours.end()) {
    throw InputError("give the command after --, as in gyre launch -n 2 -- train CONFIG.toml");
  }
  if (not_ours.size() > 1) throw CLI::ExtrasError("launch", not_ours);
}

// A launcher that starts launchers would start the run several times.
void check_not_launched() {
  const auto rank = find_rank();
  if (!rank || rank->world == 1) return;
  throw InputError(
      fmt::format("gyre launch was itself started as rank {} of {}, by {}; use only one of the two launchers",
                  rank->rank, rank->world, rank->launcher));
}

void run(const CLI::App& command, const Flags& flags) {
  check_separated(command, flags.words);
  const auto launched = read_command(flags.words);
  if (!launched) return;
  check_not_launched();
  LaunchOptions options;
  options.ranks = static_cast<int>(flags.ranks);
  options.max_restarts = static_cast<int>(flags.max_restarts);
  options.logs = flags.logs;
  const std::string temporary = environment_variable("TMPDIR").value_or("");
  if (!temporary.empty()) options.temporary = temporary;
  const std::string program = engine_program("launch").string();
  for (auto& [words, given] :
       {std::pair(&options.command, &launched->first), std::pair(&options.again, &launched->again)}) {
    *words = {program};
    words->insert(words->end(), given->begin(), given->end());
  }
  options.say = [](const std::string& line) { print_error(line); };
  SignalQueue signals;
  const int exit_code = launch_ranks(options, signals);
  if (exit_code != 0) throw CLI::RuntimeError(exit_code);
}

}  // namespace

void add_launch(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("launch", "Train, or measure links, as several processes of this host");
  add_number(*command, "-n", flags->ranks, {1, kMaxRanks}, "How many processes, the ranks 0 to N-1")
      ->required()
      ->default_str("");
  add_number(*command, "--max-restarts", flags->max_restarts, {0, 1'000'000},
             "How often to start all ranks again when one has failed; see below");
  command->add_option("--log-dir", flags->logs, "Directory for the output of ranks other than 0: rank-N.log")
      ->check(directory_to_make());
  command->add_option("command", flags->words, "train, with its configuration and flags; or measure-links")
      ->option_text("-- train CONFIG.toml ...");
  command->allow_extras();  // check_separated() looks at them
  command->footer(
      "Rank 0 has the terminal. The output of the others goes to files in --log-dir; without it, it is removed at\n"
      "the end unless a message names it. SIGINT, SIGTERM and SIGHUP are passed on to every rank, which drain and\n"
      "save; another SIGINT or SIGTERM, a second or more later, kills them. If one rank fails, the others end\n"
      "too; the exit code is its own, or 1 where a signal ended it.\n\n"
      "After a failure --max-restarts starts all ranks again: they go on from the run's newest checkpoint.\n"
      "Bad input (2), divergence (3), a full disk (4) and signals to stop (130, 143) are not tried again, nor is a "
      "run\n"
      "that is done and whose result cannot be printed.\n\n"
      "The ranks meet in a private directory under TMPDIR, and listen on 127.0.0.1 only.");
  command->callback([command, flags] { run(*command, *flags); });
}

}  // namespace gyre::app
