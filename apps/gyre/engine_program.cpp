// Where the second program is.
#include "command.h"

namespace gyre::app {

std::filesystem::path engine_program() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "gyre-engine";
}

}  // namespace gyre::app
