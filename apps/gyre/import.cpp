// gyre import MODEL: a model of Hugging Face's transformers or of llm.c becomes a run.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "gyre/core/text.h"
#include "gyre/exchange/import_model.h"
#include "interrupts.h"
#include "number_flag.h"
#include "output.h"

namespace gyre::app {
namespace {

struct Flags {
  std::string from;
  std::string out;
  std::string tokenizer;
  int64_t context = 0;
  bool json = false;
};

// "[CLS] 253, [SEP] 254".
std::string by_number(const std::map<std::string, int64_t>& tokens) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [text, number] : tokens) sorted.emplace_back(number, text);
  std::ranges::sort(sorted);
  std::vector<std::string> words;
  for (const auto& [number, text] : sorted) words.push_back(fmt::format("{} {}", text, number));
  return join(words, ", ");
}

// `model`: how many tokens the model has.
void print_tokenizer(const ImportedTokenizer& tokenizer, int64_t model) {
  print("tokenizer: {}, {} tokens{}; \"{}\" ({}) ends documents\n", join(tokenizer.files, " with "),
        tokenizer.vocabulary, tokenizer.vocabulary < model ? fmt::format(" of the model's {}", model) : "",
        printable(tokenizer.end_of_document_text), tokenizer.end_of_document);
}

void add_tokenizer(const ImportedTokenizer& tokenizer, nlohmann::ordered_json& json) {
  json["tokenizer"] = tokenizer.kind;
  json["tokenizer_files"] = tokenizer.files;
  json["tokenizer_vocabulary"] = tokenizer.vocabulary;
  json["end_of_document_text"] = tokenizer.end_of_document_text;
  json["end_of_document_id"] = tokenizer.end_of_document;
}

void run(const Flags& flags) {
  const ImportResult result = make_unless_stopped([&](const std::stop_token& stop) {
    return import_model(
        {.from = flags.from, .out = flags.out, .tokenizer = flags.tokenizer, .context = flags.context, .stop = stop});
  });
  if (flags.json) {
    nlohmann::ordered_json json = {{"run", flags.out},
                                   {"model_type", result.model_type},
                                   {"parameters", result.parameters},
                                   {"vocabulary", result.vocabulary},
                                   {"context", result.context},
                                   {"dtype", result.dtype},
                                   {"left_out", result.left_out},
                                   {"assumed_tokens", result.assumed_tokens},
                                   {"tokenizer_fault", result.tokenizer_fault},
                                   {"tokenizer", ""}};
    if (result.tokenizer) add_tokenizer(*result.tokenizer, json);
    print_object(json);
    return;
  }
  print("{}: a {} of {} parameters ({}), vocabulary {}, context {}\n", printable(flags.out), result.model_type,
        human_count(static_cast<double>(result.parameters)), result.dtype, result.vocabulary, result.context);
  if (!result.left_out.empty()) {
    print("left out, being no weights: {}\n", printable(join(result.left_out, ", ")));
  }
  if (!result.assumed_tokens.empty()) {
    print("no tokenizer gives the special tokens; taken to be the last of the vocabulary: {}\n",
          by_number(result.assumed_tokens));
  }
  if (result.tokenizer) print_tokenizer(*result.tokenizer, result.vocabulary);
  if (!result.tokenizer_fault.empty()) {
    print("without its tokenizer: {}\n", printable(result.tokenizer_fault));
  }
  print("train it: gyre train {}/train.toml --set data.tokens=DATA --out NEXT\n", shell_word(flags.out));
}

}  // namespace

void add_import(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kImport.name, kImport.meaning);
  command
      ->add_option(
          "model", flags->from,
          "Directory with config.json and model.safetensors, or its shards; or a GPT-2 of llm.c, such as gpt2_124M.bin")
      ->check(some_path())
      ->required();
  command->add_option("--out", flags->out, "Directory of the run to make")->check(directory_to_make())->required();
  command
      ->add_option(
          "--tokenizer", flags->tokenizer,
          "For a model of llm.c: its tokenizer, a file or a directory, so that the run can read and write text")
      ->check(some_path());
  add_number(*command, "--context", flags->context, {0},
             "Tokens in a sequence; 0: as many as the model has positions, but at most 2048 if they are rotary");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
