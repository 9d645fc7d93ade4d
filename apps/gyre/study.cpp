// gyre study STUDY.toml: a grid of runs side by side, compared.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/core/cores.h"
#include "gyre/core/error.h"
#include "gyre/core/message.h"
#include "gyre/core/text.h"
#include "gyre/study/run_study.h"
#include "interrupts.h"
#include "number_flag.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  std::string study;
  std::string out;
  int64_t jobs = 0;
  bool report_only = false;
  bool help_study = false;
  bool schema = false;
  bool json = false;
};

void run(const Flags& flags) {
  if (flags.help_study) {
    print("{}", describe_study());
    return;
  }
  if (flags.schema) {
    print("{}\n", study_schema().dump(2));
    return;
  }
  if (flags.study.empty()) throw InputError("gyre study: give a STUDY.toml; --help-study lists what it can say");
  const Study study = load_study(flags.study);
  RunStudyOptions options;
  options.root = flags.out.empty() ? std::filesystem::path("studies") / study.name : std::filesystem::path(flags.out);
  if (!flags.report_only) options.program = engine_program("study");
  options.jobs = static_cast<int>(flags.jobs > 0 ? flags.jobs : study.jobs);
  options.cores = usable_core_count();
  options.report_only = flags.report_only;
  const WakeFlag save;
  const Interrupts interrupts(SecondSignal::EndsThisProcess, [&save] {
    say(stderr, "saving: the runs under way drain, save and go on\n");
    save.raise();
  });
  options.stop = interrupts.stop();
  options.abandon = interrupts.abandon();
  options.save = &save;
  const std::stop_callback announce(options.stop, [] {
    say(stderr, "stopping: the runs drain and save; once more abandons what they have not saved\n");
  });
  options.say = [](const std::string& line) { say_lines(stderr, line); };
  const auto result = run_study(study, options);
  if (!result) {
    print("interrupted; every run is saved. Continue with the same command: gyre study {}{}\n", shell_word(flags.study),
          flags.out.empty() ? "" : " --out " + shell_word(flags.out));
    throw CLI::RuntimeError(interrupts.exit_code());
  }
  const auto files = write_results(*result, options.root);
  print("{}", flags.json ? to_json(*result) : printable_lines(to_markdown(*result)));
  for (const auto& file : files) say_lines(stderr, fmt::format("wrote {}", file.string()));
}

}  // namespace

void add_study(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("study", "Compare methods over a grid of runs, side by side and resumable");
  command->add_option("study", flags->study, "The study (TOML)")->check(some_path());
  command->add_option("--out", flags->out, "Directory of the study [studies/<name of STUDY>]")
      ->check(directory_to_make());
  add_number(*command, "--jobs", flags->jobs, {0, 4096},
             "Runs side by side; 0: what the study says, or as many as there are cores for");
  command->add_flag("--report", flags->report_only, "Run nothing; compare the runs that have finished");
  command->add_flag("--help-study", flags->help_study, "List every key of [study], and exit");
  command->add_flag("--schema", flags->schema, "Print the JSON schema of studies, for editors, and exit");
  command->add_flag("--json", flags->json, "Print the results as JSON instead of Markdown");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
