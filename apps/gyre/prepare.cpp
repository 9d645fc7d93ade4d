// gyre prepare TEXT...: text into token files.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/data/prepare.h"
#include "interrupts.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  PrepareOptions options;
  std::string out;
  bool json = false;
};

void run(Flags& flags) {
  flags.options.out = flags.out;
  const Interrupts interrupts;
  flags.options.stop = interrupts.stop();
  const PrepareResult result = [&] {
    try {
      return prepare(flags.options);
    } catch (const RunError& error) {
      if (interrupts.exit_code() == 0) throw;
      print_error(error.what());
      throw CLI::RuntimeError(interrupts.exit_code());
    }
  }();
  if (flags.json) {
    const nlohmann::ordered_json json = {{"out", flags.out},
                                         {"tokenizer", flags.options.tokenizer},
                                         {"vocabulary", result.vocabulary},
                                         {"documents", result.documents},
                                         {"text_bytes", result.text_bytes},
                                         {"train_tokens", result.train_tokens},
                                         {"val_tokens", result.val_tokens}};
    print("{}\n", json.dump());
    return;
  }
  print("{}: {} of text in {} document{}, vocabulary {}, {} tokens to train on and {} to validate\n", flags.out,
        human_bytes(static_cast<double>(result.text_bytes)), result.documents, result.documents == 1 ? "" : "s",
        result.vocabulary, result.train_tokens, result.val_tokens);
}

}  // namespace

void add_prepare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("prepare", "Turn UTF-8 text into token files");
  command->add_option("text", flags->options.texts, "Text files, each a document; - is standard input")
      ->check(some_path())
      ->required();
  command->add_option("--out", flags->out, "Directory to make")->check(directory_to_make())->required();
  command->add_option("--tokenizer", flags->options.tokenizer, "byte | bpe");
  command->add_option("--vocab-size", flags->options.vocabulary_size, "Pieces of the bpe vocabulary");
  command->add_option("--val-fraction", flags->options.val_fraction, "The end of each document, kept for validation");
  command->add_flag("--overwrite", flags->options.overwrite, "Replace prepared text that is in --out already");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, command] {
    if (flags->options.tokenizer == "byte" && command->count("--vocab-size") > 0) {
      throw InputError("--vocab-size is of --tokenizer bpe; bytes are always as many");
    }
    run(*flags);
  });
}

}  // namespace gyre::app
