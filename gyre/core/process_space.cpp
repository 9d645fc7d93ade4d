#include "gyre/core/process_space.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace gyre {

std::string process_space() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code unknown;
  const auto space = std::filesystem::read_symlink("/proc/self/ns/pid", unknown);
  return boot.empty() || unknown ? "" : boot + " " + space.string();
}

}  // namespace gyre
