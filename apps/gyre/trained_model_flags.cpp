#include "trained_model_flags.h"

#include "command.h"
#include "number_flag.h"

namespace gyre::app {

void add_trained_model(CLI::App& command, TrainedModelFlags& flags) {
  command.add_option("run", flags.run, "Directory of the run")->check(some_path())->required();
  add_number(command, "--step", flags.asked_step, {0}, "Checkpoint to use; the newest if left out")->default_str("");
  command.add_flag("--ema", flags.ema, "The averages of the weights, which [optimizer] ema_decay keeps");
}

}  // namespace gyre::app
