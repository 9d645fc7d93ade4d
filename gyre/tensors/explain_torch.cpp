#include "gyre/tensors/explain_torch.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cstdlib>

#include "gyre/core/explain.h"
#include "gyre/core/text.h"

namespace gyre {

std::string explain_torch(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  if (torch_error == nullptr) return explain_exception(error);
  const std::string what = torch_error->what_without_backtrace();
  const std::string amount = "you tried to allocate ";
  const size_t position = what.find(amount);
  if (position != std::string::npos) {
    return fmt::format(
        "out of memory: {} for one tensor cannot be had; make [pipeline] microbatch, [model] context or "
        "the model smaller",
        human_bytes(std::strtod(what.c_str() + position + amount.size(), nullptr)));
  }
  return fmt::format("unexpected failure: {}", what.substr(0, what.find('\n')));
}

}  // namespace gyre
