// gyre generate RUN: text from a trained run.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/inspect/generate.h"
#include "interrupts.h"
#include "number_flag.h"
#include "output.h"
#include "trained_model_flags.h"

namespace gyre::app {
namespace {

struct Flags {
  TrainedModelFlags model;
  bool json = false;
  std::optional<std::string> prompt, prompt_file;
  GenerateOptions options;
};

// The newline at the end is the editor's, and not part of the prompt.
std::string read_prompt(const std::string& path) {
  std::string text = path == "-" ? read_all(STDIN_FILENO, "standard input") : read_file(path);
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) throw InputError(path + ": the prompt is empty; give at least one character to continue");
  return text;
}

void generate_object(const TrainedModel& model, const GenerateOptions& options) {
  std::string text;
  generate(model, options, [&](std::string_view part) { text += part; });
  const nlohmann::ordered_json json = {{"prompt", options.prompt}, {"text", text}};
  print_object(json);
}

void generate_text(const TrainedModel& model, const GenerateOptions& options) {
  bool begun = false;  // the prompt is printed with the first part, when nothing can be refused any more
  generate(model, options, [&](std::string_view part) {
    print("{}{}", begun ? "" : options.prompt, part);
    flush_results();  // each part as it comes
    begun = true;
  });
  print("{}\n", begun ? "" : options.prompt);  // no whole character may have followed it
}

void run(Flags& flags) {
  if (flags.prompt.has_value() == flags.prompt_file.has_value()) {
    throw InputError(flags.prompt ? "--prompt and --prompt-file are both given; give one"
                                  : "gyre generate needs --prompt, or --prompt-file");
  }
  flags.options.prompt = flags.prompt ? *flags.prompt : read_prompt(*flags.prompt_file);
  const Interrupts interrupts;
  flags.options.stop = interrupts.stop();
  const TrainedModel model =
      open_trained_model(flags.model.run, Work::Generate, flags.model.step(), flags.model.weights());
  flags.json ? generate_object(model, flags.options) : generate_text(model, flags.options);
  if (interrupts.exit_code() != 0) throw CLI::RuntimeError(interrupts.exit_code());
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kGenerate.name, kGenerate.meaning);
  add_trained_model(*command, flags->model);
  command->add_option("--prompt", flags->prompt, "Text to continue");
  command->add_option("--prompt-file", flags->prompt_file, "File with the text to continue; - is standard input");
  add_number(*command, "--tokens", flags->options.tokens, {1}, "Tokens to add");
  add_number(*command, "--temperature", flags->options.sampling.temperature, {0, 1000},
             "Higher is wilder; 0 takes the likeliest token");
  add_number(*command, "--top-k", flags->options.sampling.top_k, {0}, "Choose among the k likeliest tokens; 0 for all");
  add_number(*command, "--top-p", flags->options.sampling.top_p, {0, 1},
             "Choose among the likeliest tokens whose probabilities add up to this; 1 for all");
  add_number(*command, "--seed", flags->options.seed, {0}, "The same seed gives the same text");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
