// gyre train CONFIG.toml: one run.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/report/progress.h"
#include "gyre/train/config.h"
#include "gyre/train/trainer.h"
#include "interrupts.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;
  bool resume = false;
  std::string trace;
  bool help_config = false;
  bool json = false;
};

std::filesystem::path run_directory(const Flags& flags) {
  if (!flags.out.empty()) return flags.out;
  if (flags.config.empty()) throw InputError("gyre train: give a CONFIG.toml, or --resume with --out DIR");
  return std::filesystem::path("runs") / std::filesystem::path(flags.config).stem();
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
  if (!result.finished) print("resume with: gyre train --resume --out {}\n", out.string());
}

void run(const Flags& flags) {
  if (flags.help_config) {
    print("{}", describe_config());
    return;
  }
  TrainOptions options;
  options.config = flags.config;
  options.overrides = flags.overrides;
  options.out = run_directory(flags);
  options.resume = flags.resume;
  options.trace = flags.trace;
  // The run makes its own directory.
  const bool goes_there =
      std::filesystem::absolute(flags.trace).parent_path() == std::filesystem::absolute(options.out);
  if (!flags.trace.empty() && !goes_there) check_writable(flags.trace);
  const Interrupts interrupts;
  options.stop = interrupts.stop();
  options.abandon = [](const Error& error) {
    print_error(error.what());
    std::_Exit(error.exit_code());
  };
  Progress progress(stderr, isatty(STDERR_FILENO) != 0);
  const TrainResult result = train(options, progress);
  print_result(flags, options.out, result);
  if (!result.finished) throw CLI::RuntimeError(interrupts.exit_code());
}

}  // namespace

void add_train(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kTrain.name, kTrain.meaning);
  command->add_option("config", flags->config, "Configuration (TOML); with --resume the run's own if left out");
  command->add_option("--set", flags->overrides, "Override a key: table.key=value (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--out", flags->out, "Directory of the run [runs/<name of CONFIG>]");
  command->add_flag("--resume", flags->resume, "Continue the run in --out from its newest checkpoint");
  command->add_option("--trace", flags->trace, "Write what ran as Chrome trace (JSON) to this file");
  command->add_flag("--json", flags->json, "Print the result as one JSON object");
  command->add_flag("--help-config", flags->help_config, "List every configuration key with its default, and exit");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
