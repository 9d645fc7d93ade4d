// gyre generate RUN: text from a trained run.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/inspect/generate.h"
#include "interrupts.h"
#include "number_flag.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  std::string run;
  int64_t step = -1;
  bool json = false;
  GenerateOptions options;
};

void run(Flags& flags) {
  const Interrupts interrupts;
  flags.options.stop = interrupts.stop();
  const TrainedModel model =
      open_trained_model(flags.run, Work::Generate, flags.step < 0 ? std::nullopt : std::optional<int64_t>(flags.step));
  if (flags.json) {
    std::string text;
    generate(model, flags.options, [&](std::string_view part) { text += part; });
    const nlohmann::ordered_json json = {{"prompt", flags.options.prompt}, {"text", text}};
    print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  bool begun = false;  // nothing is printed before all is known to be well
  generate(model, flags.options, [&](std::string_view part) {
    print("{}{}", begun ? "" : flags.options.prompt, part);
    flush_results();  // each part as it comes
    begun = true;
  });
  print("\n");
  if (interrupts.exit_code() != 0) throw CLI::RuntimeError(interrupts.exit_code());
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kGenerate.name, kGenerate.meaning);
  command->add_option("run", flags->run, "Directory of the run")->check(some_path())->required();
  command->add_option("--prompt", flags->options.prompt, "Text to continue")->required();
  add_number(*command, "--tokens", flags->options.tokens, {1}, "Tokens to add");
  add_number(*command, "--temperature", flags->options.temperature, {0, 1000},
             "Higher is wilder; 0 takes the likeliest token");
  add_number(*command, "--top-k", flags->options.top_k, {0}, "Choose among the k likeliest tokens; 0 for all");
  add_number(*command, "--seed", flags->options.seed, {0}, "The same seed gives the same text");
  add_number(*command, "--step", flags->step, {0}, "Checkpoint to use; the newest if left out");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
