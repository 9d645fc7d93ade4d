#include "gyre/core/random_hex.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (::getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) {
    throw RunError(fmt::format("the system gives no random numbers: {}", std::strerror(errno)));
  }
  std::string text;
  for (const unsigned char byte : random) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace gyre
