// gyre and gyre-engine in one program with additional schedules, an optimizer and a model, which main registers first
// of all.
#include "command.h"
#include "outside/components.h"

int main(int argc, char** argv) {
  gyre::outside::add_lifo();
  gyre::outside::add_signum();
  gyre::outside::add_echo();
  gyre::outside::add_faulty();
  return gyre::app::is_engine_command(argc, argv) ? gyre::app::run_engine(argc, argv) : gyre::app::run_gyre(argc, argv);
}
