#include "gyre/core/wake_flag.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "gyre/core/error.h"

namespace gyre {

WakeFlag::WakeFlag() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!descriptor_.ok())
    throw RunError(fmt::format("no file descriptor is left: {}; raise the limit (ulimit -n)", std::strerror(errno)));
}

void WakeFlag::raise() const {
  ::eventfd_write(descriptor_.get(), 1);
}

bool WakeFlag::lower() const {
  eventfd_t times = 0;
  return ::eventfd_read(descriptor_.get(), &times) == 0;
}

}  // namespace gyre
