// gyre-engine with the same.
#include "command.h"
#include "outside/components.h"

int main(int argc, char** argv) {
  gyre::outside::add_kinds();
  gyre::outside::add_signum_maker();
  gyre::outside::add_echo_maker();
  return gyre::app::run_engine(argc, argv);
}
