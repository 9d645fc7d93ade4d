// gyre with a schedule, an optimizer and a model of one's own.
#include "command.h"
#include "outside/components.h"

int main(int argc, char** argv) {
  gyre::outside::add_kinds();
  return gyre::app::run_gyre(argc, argv);
}
