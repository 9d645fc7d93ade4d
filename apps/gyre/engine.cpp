// gyre-engine: the commands that touch tensors.
#include <signal.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>

#include "command.h"
#include "gyre/core/process_limits.h"
#include "gyre/kernels/linear.h"
#include "gyre/tensors/explain_torch.h"
#include "gyre/tensors/host_memory.h"
#include "interrupts.h"
#include "output.h"

namespace {

bool ignores_hangup = false;

// Libraries of some libtorch's transports (UCX) take SIGHUP when they are loaded, also where it is ignored, as nohup
// does. So this looks before any library is initialised.
void look_at_hangup(int, char**, char**) {
  struct sigaction action {};
  ignores_hangup = ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}
__attribute__((section(".preinit_array"), used)) void (*const look_first)(int, char**, char**) = look_at_hangup;

// libtorch starts a pool of threads, and would wait forever for threads that the system refuses it.
void check_room_for_pool() {
  constexpr size_t kBytes = size_t{16} << 20;  // a stack, and a little more
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  gyre::check_room_for_threads(threads, kBytes, "libtorch's pool of threads");
}

// Of commands whose sizes are those of the files that they are given.
std::string explain_without_sizes(const std::exception& error) {
  return gyre::explain_torch(error, gyre::kFreeMemory);
}

}  // namespace

namespace gyre::app {

void add_engine_commands(CLI::App& app) {
  app.parse_complete_callback(check_room_for_pool);
  add_train(app);
  add_eval(app);
  add_generate(app);
  add_plan(app);
  add_diagnose(app);
  add_import(app);
  add_export(app);
  add_info(app);
  add_measure_links(app);
}

int run_engine(int argc, char** argv) {
  open_standard_streams();
  if (ignores_hangup) ::signal(SIGHUP, SIG_IGN);
  heed_hangup();
  const HostMemory memory;
  heed_limit_of_instructions();
  const std::string_view word = argc > 1 ? argv[1] : "";
  std::string (*explain)(const std::exception&) = explain_torch;
  if (word == kImport.name || word == kExport.name || word == kInfo.name || word == kMeasureLinks.name) {
    explain = explain_without_sizes;
  }
  return run_command_line(argc, argv, add_engine_commands, explain);
}

}  // namespace gyre::app
