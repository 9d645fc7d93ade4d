// gyre-engine: the commands that touch tensors.
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

#include "command.h"
#include "gyre/core/process_limits.h"
#include "gyre/core/text.h"
#include "gyre/tensors/host_memory.h"
#include "interrupts.h"
#include "output.h"

namespace {

// libtorch starts a pool of threads, and waits for ever for those that the system refuses it.
void check_room_for_pool() {
  constexpr size_t kBytes = size_t{16} << 20;  // a stack, and some
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  gyre::check_room_for_threads(threads, kBytes, "libtorch's pool of threads");
}

// libtorch's errors carry a stack trace; its allocator's are about something that a user can change.
std::string explain(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  if (of_torch == nullptr) return gyre::app::explain_exception(error);
  const std::string what = of_torch->what_without_backtrace();
  const std::string amount = "you tried to allocate ";
  const size_t at = what.find(amount);
  if (at != std::string::npos) {
    return fmt::format(
        "out of memory: {} for one tensor cannot be had; make [pipeline] microbatch, [model] context or "
        "the model smaller",
        gyre::human_bytes(std::strtod(what.c_str() + at + amount.size(), nullptr)));
  }
  return fmt::format("unexpected failure: {}", what.substr(0, what.find('\n')));
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
  heed_hangup();
  const HostMemory memory;
  return run_command_line(argc, argv, add_engine_commands, ::explain);
}

}  // namespace gyre::app
