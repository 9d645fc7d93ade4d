#include "gyre/core/explain.h"

#include <fmt/format.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "gyre/core/error.h"
#include "gyre/core/process_limits.h"

namespace gyre {

bool is_refused_thread(const std::exception& error) {
  const auto* const system_error = dynamic_cast<const std::system_error*>(&error);
  return system_error != nullptr && system_error->code() == std::errc::resource_unavailable_try_again;
}

std::string explain_exception(const std::exception& error) {
  return explain_exception(error, kFreeMemory);
}

std::string explain_exception(const std::exception& error, const std::string& remedy) {
  if (dynamic_cast<const Error*>(&error) != nullptr) return error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return fmt::format("out of memory; {}", remedy);
  }
  if (is_refused_thread(error)) return fmt::format("a thread cannot be started: {}", why_not_started(EAGAIN));
  return fmt::format("unexpected failure: {}", error.what());
}

int exit_code_of(const std::exception& error) {
  const auto* const own = dynamic_cast<const Error*>(&error);
  return own != nullptr ? own->exit_code() : kFailed;
}

}  // namespace gyre
