#include "gyre/core/explain.h"

#include <fmt/format.h>

#include <new>
#include <system_error>

#include "gyre/core/error.h"

namespace gyre {

std::string explain_exception(const std::exception& error) {
  if (dynamic_cast<const Error*>(&error) != nullptr) return error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return "out of memory; make [pipeline] microbatch, [model] context or the model smaller";
  }
  const auto* system_error = dynamic_cast<const std::system_error*>(&error);
  if (system_error != nullptr && system_error->code() == std::errc::resource_unavailable_try_again) {
    return fmt::format("a thread cannot be started: {}; raise the limit of processes (ulimit -u)",
                       system_error->code().message());
  }
  return fmt::format("unexpected failure: {}", error.what());
}

int exit_code_of(const std::exception& error) {
  const auto* const own = dynamic_cast<const Error*>(&error);
  return own != nullptr ? own->exit_code() : kFailed;
}

}  // namespace gyre
