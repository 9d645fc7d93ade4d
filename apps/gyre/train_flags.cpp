#include "train_flags.h"

#include <fmt/format.h>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/core/wrong_file.h"
#include "gyre/report/trace.h"

namespace gyre::app {

void declare_train_flags(CLI::App& command, TrainFlags& flags) {
  command.add_option("config", flags.inputs, "Configuration (TOML); after --resume the run's directory")
      ->check(some_path())
      ->option_text("CONFIG.toml | RUN")
      ->expected(0, 2);
  command.add_option("--set", flags.overrides, "Override a key: table.key=value (repeatable)")->allow_extra_args(false);
  command.add_option("--out", flags.out, "Directory of the run [runs/<name of CONFIG>]")->check(directory_to_make());
  command.add_flag("--resume", flags.resume, "Continue RUN from its newest checkpoint: gyre train --resume RUN");
  command.add_flag("--check", flags.check, "Check everything and say what the run would be; write nothing");
  command.add_option("--trace", flags.trace, "Write what ran as Chrome trace (JSON) to this file")
      ->check(file_to_write(kTraceBeginning));
  declare_meeting_flags(command, flags.meeting);
  command.add_flag("--json", flags.json, "Print the result as one JSON object");
  command.add_flag("--help-config", flags.help_config, "List every configuration key with its default, and exit");
}

// Among the positional arguments, directories are runs to resume and all others are configurations.
TrainPlace place_of(const TrainFlags& flags) {
  TrainPlace place;
  place.out = flags.out;
  for (const std::string& input : flags.inputs) {
    std::error_code none;
    const bool is_run = std::filesystem::is_directory(input, none);
    if (is_run && !flags.resume) {
      if (!std::filesystem::exists(std::filesystem::path(input) / "config.toml", none)) {
        throw InputError(
            fmt::format("{}: is a directory without a run; give a CONFIG.toml{}", input, hint_of_import(input)));
      }
      throw InputError(fmt::format("{}: is a directory; to continue the run in it: gyre train --resume {}", input,
                                   shell_word(input)));
    }
    if (flags.resume && !std::filesystem::exists(input)) {
      throw InputError(fmt::format("{}: is not there; give a run's directory or a configuration", printable(input)));
    }
    std::filesystem::path& taken = is_run ? place.out : place.config;
    if (!taken.empty()) {
      throw InputError(
          is_run ? fmt::format("the run is given twice, as {} and as {}; give it once", taken.string(), input)
                 : fmt::format("a run has one configuration, but two are given: {} and {}", taken.string(), input));
    }
    taken = input;
  }
  if (place.out.empty()) {
    if (place.config.empty()) {
      throw InputError("gyre train: give a CONFIG.toml, or --resume RUN; gyre init writes one");
    }
    place.out = std::filesystem::path("runs") / place.config.stem();
  }
  return place;
}

}  // namespace gyre::app
