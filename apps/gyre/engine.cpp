// gyre-engine: the commands that touch tensors.
#include <malloc.h>

#include "command.h"
#include "output.h"

namespace {

// Activations come and go at every microbatch. Left to itself the allocator maps and unmaps the large ones each time,
// and the page faults cost more than the arithmetic; so large blocks stay in its own heap.
void keep_large_blocks_in_the_heap() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

void add_commands(CLI::App& app) {
  gyre::app::add_train(app);
  gyre::app::add_eval(app);
  gyre::app::add_generate(app);
  gyre::app::add_plan(app);
  gyre::app::add_diagnose(app);
  gyre::app::add_info(app);
}

}  // namespace

int main(int argc, char** argv) {
  gyre::app::open_standard_streams();
  keep_large_blocks_in_the_heap();
  return gyre::app::run_command_line(argc, argv, add_commands);
}
