#include "gyre/runtime/executor.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {

std::vector<std::string> executor_names() {
  return {"replay", "threads"};
}

std::unique_ptr<Executor> make_executor(const std::string& name) {
  if (name == "replay") return make_replay_executor();
  if (name == "threads") return make_threads_executor();
  throw InputError(fmt::format("[pipeline] executor = \"{}\" is unknown{}", name, suggestion(name, executor_names())));
}

}  // namespace gyre
