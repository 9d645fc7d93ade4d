// gyre generate RUN: text from a trained run.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/train/trained_model.h"
#include "interrupts.h"
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
      open_trained_model(flags.run, flags.step < 0 ? std::nullopt : std::optional<int64_t>(flags.step));
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
  command->add_option("run", flags->run, "Directory of the run")->required();
  command->add_option("--prompt", flags->options.prompt, "Text to continue")->required();
  command->add_option("--tokens", flags->options.tokens, "Tokens to add");
  command->add_option("--temperature", flags->options.temperature, "Higher is wilder; 0 takes the likeliest token");
  command->add_option("--top-k", flags->options.top_k, "Choose among the k likeliest tokens; 0 for all");
  command->add_option("--seed", flags->options.seed, "The same seed gives the same text");
  command->add_option("--step", flags->step, "Checkpoint to use; the newest if left out");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
