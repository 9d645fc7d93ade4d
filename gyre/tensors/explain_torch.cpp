#include "gyre/tensors/explain_torch.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "gyre/core/explain.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

std::optional<std::string> behind(const std::string& words, const std::string& text) {
  const size_t at = text.find(words);
  return at == std::string::npos ? std::nullopt : std::optional(text.substr(at + words.size()));
}

std::string out_of_memory(const std::string& amount, const std::string& where, const std::string& remedy) {
  return fmt::format("out of memory: {} for one tensor cannot be had{}; {}", amount, where, remedy);
}

}  // namespace

std::string explain_torch(const std::exception& error) {
  return explain_torch(error, "make [pipeline] microbatch, [model] context or the model smaller");
}

std::string explain_torch(const std::exception& error, const std::string& remedy) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  if (torch_error == nullptr) return explain_exception(error, remedy);
  const std::string what = torch_error->what_without_backtrace();
  if (const auto amount = behind("you tried to allocate ", what)) {
    return out_of_memory(human_bytes(std::strtod(amount->c_str(), nullptr)), "", remedy);
  }
  // "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; ...", or "... 2.00 GiB. GPU 0 has ..."
  if (const auto amount = behind("out of memory. Tried to allocate ", what)) {
    const auto gpu = behind("GPU ", *amount);
    const std::string where = gpu ? fmt::format(" on GPU {}", std::strtol(gpu->c_str(), nullptr, 10)) : "";
    return out_of_memory(amount->substr(0, amount->find("iB") + 2), where, remedy);
  }
  return fmt::format("unexpected failure: {}", what.substr(0, what.find('\n')));
}

}  // namespace gyre
