// gyre train CONFIG.toml: one run.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/report/progress.h"
#include "gyre/train/trainer.h"
#include "interrupts.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  std::vector<std::string> inputs;  // CONFIG.toml; with --resume the run's directory, or both
  std::vector<std::string> overrides;
  std::string out;
  bool resume = false;
  bool check = false;
  std::string trace;
  bool help_config = false;
  bool json = false;
};

// Of what stands without a flag, directories are runs to resume and the rest are configurations.
TrainOptions options_of(const Flags& flags) {
  TrainOptions options;
  options.out = flags.out;
  for (const std::string& input : flags.inputs) {
    std::error_code none;
    const bool is_run = std::filesystem::is_directory(input, none);
    if (is_run && !flags.resume) {
      throw InputError(
          fmt::format("{}: is a directory; to continue the run in it: gyre train --resume {}", input, input));
    }
    if (flags.resume && !std::filesystem::exists(input)) {
      throw InputError(fmt::format("{}: neither a run nor a configuration is here", printable(input)));
    }
    std::filesystem::path& taken = is_run ? options.out : options.config;
    if (!taken.empty()) {
      throw InputError(
          is_run ? fmt::format("the run is given twice, as {} and as {}; give it once", taken.string(), input)
                 : fmt::format("one configuration makes a run, and {} and {} are given", taken.string(), input));
    }
    taken = input;
  }
  if (options.out.empty()) {
    if (options.config.empty())
      throw InputError("gyre train: give a CONFIG.toml, or --resume RUN; gyre init writes one");
    options.out = std::filesystem::path("runs") / options.config.stem();
  }
  options.overrides = flags.overrides;
  options.resume = flags.resume;
  options.trace = flags.trace;
  return options;
}

void print_result(const Flags& flags, const std::filesystem::path& out, const TrainResult& result) {
  if (flags.json) {
    nlohmann::ordered_json json = {{"status", result.finished ? "finished" : "interrupted"},
                                   {"run", out.string()},
                                   {"step", result.step},
                                   {"parameters", result.parameters},
                                   {"tokens", result.tokens},
                                   {"loss", result.loss},
                                   {"val_loss", nullptr},
                                   {"tokens_per_second", result.tokens_per_second},
                                   {"bubble_fraction", nullptr},
                                   {"seconds", result.seconds}};
    if (result.val_loss) json["val_loss"] = *result.val_loss;
    if (result.bubble_fraction) json["bubble_fraction"] = *result.bubble_fraction;
    print("{}\n", json.dump());
    return;
  }
  print("{} at step {}: loss {:.4f}", result.finished ? "finished" : "interrupted", result.step, result.loss);
  if (result.val_loss) print(", validation loss {:.4f}", *result.val_loss);
  print(", {} tokens/s", human_count(result.tokens_per_second));
  if (result.bubble_fraction) print(", bubble {:.1f}%", 100 * *result.bubble_fraction);
  print(", {}\n", human_duration(result.seconds));
  print("run: {}\n", out.string());
  if (!result.finished) print("resume with: gyre train --resume {}\n", out.string());
}

void run(const Flags& flags) {
  if (flags.help_config) {
    print("{}", describe_config());
    return;
  }
  TrainOptions options = options_of(flags);
  Progress progress(stderr, isatty(STDERR_FILENO) != 0);
  if (flags.check) {
    check(options, progress);
    print("{} can be {} here; nothing was written\n", (options.config.empty() ? options.out : options.config).string(),
          options.resume ? "resumed" : "trained");
    return;
  }
  const Interrupts interrupts;
  options.stop = interrupts.stop();
  options.abandon = [](const Error& error) {
    print_error(error.what());
    std::_Exit(error.exit_code());
  };
  const TrainResult result = train(options, progress);
  print_result(flags, options.out, result);
  if (!result.finished) throw CLI::RuntimeError(interrupts.exit_code());
}

}  // namespace

void add_train(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kTrain.name, kTrain.meaning);
  command->add_option("config", flags->inputs, "Configuration (TOML); after --resume the run's directory")
      ->check(some_path())
      ->option_text("CONFIG.toml | RUN")
      ->expected(0, 2);
  command->add_option("--set", flags->overrides, "Override a key: table.key=value (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--out", flags->out, "Directory of the run [runs/<name of CONFIG>]")->check(directory_to_make());
  command->add_flag("--resume", flags->resume, "Continue RUN from its newest checkpoint: gyre train --resume RUN");
  command->add_flag("--check", flags->check, "Check everything and say what the run would be; write nothing");
  command->add_option("--trace", flags->trace, "Write what ran as Chrome trace (JSON) to this file")
      ->check(file_to_write());
  command->add_flag("--json", flags->json, "Print the result as one JSON object");
  command->add_flag("--help-config", flags->help_config, "List every configuration key with its default, and exit");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
