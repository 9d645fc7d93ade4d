#include "gyre/runtime/executor.h"

#include <fmt/format.h>

#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {

std::vector<std::string> executor_names() {
  return {"replay", "threads"};
}

std::unique_ptr<Executor> make_executor(const std::string& name, WrapTransport wrap) {
  if (name == "replay") return make_replay_executor(std::move(wrap));
  if (name == "threads") return make_threads_executor(std::move(wrap));
  throw InputError(fmt::format("[pipeline] executor = \"{}\" is unknown{}", name, suggestion(name, executor_names())));
}

}  // namespace gyre
