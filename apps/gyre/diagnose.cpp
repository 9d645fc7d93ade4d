// gyre diagnose RUN: what delay does to a trained run.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "command.h"
#include "gyre/inspect/diagnostics.h"
#include "number_flag.h"
#include "output.h"
#include "work_line.h"

namespace gyre::app {
namespace {

constexpr int64_t kMaxRepeated = 1'000'000;

struct Flags {
  std::string run;
  int64_t step = -1;
  DiagnosticsOptions options;
  bool json = false;
};

Diagnostics diagnose_with_progress(const TrainedModel& model, DiagnosticsOptions options) {
  WorkLine line;
  options.progress = [&](int64_t done, int64_t all, const char* thing) { line.draw(done, all, thing, "computed"); };
  return diagnose(model, options);
}

void run(const Flags& flags) {
  check_draws(flags.options.draws);
  const TrainedModel model =
      open_trained_model(flags.run, Work::Diagnose, flags.step < 0 ? std::nullopt : std::optional<int64_t>(flags.step));
  const Diagnostics d = diagnose_with_progress(model, flags.options);
  if (flags.json) {
    print("{}\n", to_json(d));
    return;
  }
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{:.3f}", *value) : "-"; };
  if (d.hessian) {
    const HessianNorms& norms = *d.hessian;
    // The Hessian is 0 where no gradient depends on the weights, as with a vocabulary of one token.
    const auto ratio = norms.own > 0 ? std::optional(norms.rotated / norms.own) : std::nullopt;
    print("step {}: Hessian (1,1)-norm over {} rotatable weights {:.4g}, in {} {:.4g}, ratio {}\n", d.step,
          d.parameters, norms.own, norms.own_bases ? "the run's bases" : "bases of fresh gradients", norms.rotated,
          number(ratio));
  }
  bool is_still = false;
  print("{:>5} {:>6} {:>8} {:>12}\n", "stage", "delay", "cosine", "oscillation");
  for (size_t stage = 0; stage < d.stages.size(); ++stage) {
    const StageDiagnostics& found = d.stages[stage];
    print("{:>5} {:>6} {:>8} {:>12}\n", stage, found.delay, number(found.cosine), number(found.oscillation));
    is_still |= !found.oscillation;
  }
  if (is_still) {
    print(
        "-: no update changes the weights, as where the schedule of the learning rate ends at 0; --step names an "
        "earlier checkpoint\n");
  }
}

}  // namespace

void add_diagnose(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(kDiagnose.name, kDiagnose.meaning);
  command->add_option("run", flags->run, "Directory of the run")->check(some_path())->required();
  add_number(*command, "--step", flags->step, {0}, "Checkpoint to use; the newest if left out");
  add_number(*command, "--draws", flags->options.draws, {0, 4095},
             "Draws of the Hessian norm's estimate, an odd number from 15 on; 0 leaves it out");
  add_number(*command, "--microbatches", flags->options.microbatches, {1, kMaxRepeated},
             "Microbatches that the Hessian is taken over");
  add_number(*command, "--updates", flags->options.updates, {1, kMaxRepeated},
             "Updates over which directions are compared");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
