// Finds the second program, and checks that there is room to load it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/process_limits.h"

namespace gyre::app {
namespace {

// While the engine is loaded, OpenBLAS allocates a buffer for each of its threads, and tries forever if it gets none.
constexpr size_t kLibraries = size_t{640} << 20;
constexpr size_t kBuffer = size_t{128} << 20;

size_t threads_of_openblas() {
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  const long wanted = asked != nullptr ? std::strtol(asked, nullptr, 10) : 0;
  const long cores = std::max(1L, static_cast<long>(std::thread::hardware_concurrency()));
  return static_cast<size_t>(wanted > 0 ? std::min(wanted, cores) : cores);
}

}  // namespace

std::filesystem::path engine_program(std::string_view command) {
  check_address_space(kLibraries + kBuffer * threads_of_openblas(), "gyre-engine cannot be loaded");
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    throw RunError(
        fmt::format("/proc/self/exe: cannot be read: {}; gyre finds gyre-engine by it: mount /proc", error.message()));
  }
  auto program = own.parent_path() / "gyre-engine";
  if (std::filesystem::status(program, error).type() != std::filesystem::file_type::not_found) return program;
  throw RunError(
      fmt::format("gyre {} needs gyre-engine, which is not in {}; build gyre with libtorch, or install its "
                  "part 'engine' (Debian's package gyre-engine)",
                  command, own.parent_path().string()));
}

}  // namespace gyre::app
