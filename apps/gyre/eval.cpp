// gyre eval RUN: validation loss of a trained run.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"
#include "gyre/build/devices.h"
#include "gyre/core/error.h"
#include "gyre/inspect/evaluate_run.h"
#include "number_flag.h"
#include "output.h"
#include "trained_model_flags.h"
#include "work_line.h"

namespace gyre::app {
namespace {

struct Flags {
  TrainedModelFlags model;
  std::string data, device;
  int64_t batches = 0;
  bool json = false;
};

EvaluationResult evaluate_with_progress(const TrainedModel& model, const Flags& flags) {
  WorkLine line;
  return evaluate_run(model, flags.batches, flags.data,
                      [&](int64_t done, int64_t all) { line.draw(done, all, "microbatch", "evaluated"); });
}

void run(const Flags& flags) {
  TrainedModel model = open_trained_model(flags.model.run, Work::Evaluate, flags.model.step(), flags.model.weights());
  if (!flags.device.empty()) {
    device_of_setting("--device", flags.device);
    model.config.pipeline.device = flags.device;
  }
  const EvaluationResult result = evaluate_with_progress(model, flags);
  if (!std::isfinite(result.val_loss)) {
    throw Divergence(
        fmt::format("{}: the validation loss is not finite: of step {}, weights or what they compute are not",
                    flags.model.run, result.step));
  }
  if (flags.json) {
    using Json = nlohmann::ordered_json;
    const Json json = {{"run", flags.model.run},
                       {"step", result.step},
                       {"tokens", result.tokens},
                       {"val_loss", result.val_loss},
                       {"perplexity", result.perplexity ? Json(*result.perplexity) : Json()}};
    print_object(json);
  } else {
    const std::string perplexity = result.perplexity ? fmt::format(", perplexity {:.3f}", *result.perplexity) : "";
    print("step {}: validation loss {:.4f}{}, over {} {}\n", result.step, result.val_loss, perplexity, result.tokens,
          result.predicts_all_tokens ? "tokens" : "positions");
  }
}

}  // namespace

void add_eval(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kEval.name, kEval.meaning);
  add_trained_model(*command, flags->model);
  command
      ->add_option("--data", flags->data,
                   "Tokens to use instead of the run's: a directory of gyre prepare, or token files of other programs: "
                   "those for validation by their names, or all if none is")
      ->check(some_path());
  add_number(*command, "--batches", flags->batches, {0}, "Microbatches to evaluate; 0 for all");
  command->add_option("--device", flags->device, "Where to compute, instead of on the run's [pipeline] device");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
