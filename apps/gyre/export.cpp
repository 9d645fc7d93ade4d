// gyre export RUN: a run's model for Hugging Face's transformers or for llm.c.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "gyre/core/bytes.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"
#include "gyre/exchange/export_model.h"
#include "interrupts.h"
#include "number_flag.h"
#include "output.h"
#include "trained_model_flags.h"

namespace gyre::app {
namespace {

constexpr const char* kTransformers = "transformers";
constexpr const char* kLlmC = "llm.c";
constexpr const char* kShardSize = "5GB";

struct Flags {
  TrainedModelFlags model;
  std::string out;
  std::string format = kTransformers;
  std::string dtype = "auto";
  std::string shard_size = kShardSize;
  bool json = false;
};

void run(const Flags& flags) {
  const auto shard_bytes = parse_bytes(flags.shard_size);
  if (!shard_bytes) {
    throw InputError(
        fmt::format("--shard-size {} is not a size; give for example 500MB, 5GB or 2GiB", printable(flags.shard_size)));
  }
  const bool llm_c = flags.format == kLlmC;
  if (llm_c && flags.shard_size != kShardSize) {
    throw InputError("--shard-size is for --format transformers; a model of llm.c is one file");
  }
  const ExportResult result = make_unless_stopped([&](const std::stop_token& stop) {
    return export_model({.run = flags.model.run,
                         .out = flags.out,
                         .format = llm_c ? ExportFormat::LlmC : ExportFormat::Transformers,
                         .step = flags.model.step(),
                         .weights = flags.model.weights(),
                         .dtype = flags.dtype,
                         .shard_bytes = *shard_bytes,
                         .stop = stop});
  });
  if (flags.json) {
    const nlohmann::ordered_json json = {{"out", flags.out},      {"model_type", result.model_type},
                                         {"step", result.step},   {"parameters", result.parameters},
                                         {"files", result.files}, {"side_files", result.side_files}};
    print_object(json);
    return;
  }
  print("{}: a {} of {} parameters in {}, from step {}\n", printable(flags.out), result.model_type,
        human_count(static_cast<double>(result.parameters)), counted(result.files, "file"), result.step);
}

}  // namespace

void add_export(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kExport.name, kExport.meaning);
  add_trained_model(*command, flags->model);
  command->add_option("--out", flags->out, "Directory to make")->check(directory_to_make())->required();
  command
      ->add_option("--format", flags->format,
                   fmt::format("transformers: config.json and safetensors; llm.c: {}, for its train_gpt2", kLlmcFile))
      ->check(CLI::IsMember({kTransformers, kLlmC}));
  command
      ->add_option("--dtype", flags->dtype,
                   "Type of the tensors; auto: the original one if the model was imported and not trained, else fp32")
      ->check(CLI::IsMember(export_dtypes()));
  command->add_option("--shard-size", flags->shard_size, "Bytes of tensors in one file, at most: 500MB, 5GB, 2GiB");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
