#include "command.h"

int main(int argc, char** argv) {
  return gyre::app::run_gyre(argc, argv);
}
