#include "gyre/runtime/executor.h"

#include <utility>

#include "gyre/core/registry.h"

namespace gyre {
namespace {

struct ExecutorMaker {
  std::string name;
  std::unique_ptr<Executor> (*make)(WrapTransport wrap);
};

}  // namespace

std::unique_ptr<Executor> make_executor(const std::string& name, WrapTransport wrap) {
  static const Registry<ExecutorMaker> makers("[pipeline] executor",
                                              {{"replay", make_replay_executor},
                                               {"threads", make_threads_executor},
                                               {"processes", make_threads_executor}});  // in one process
  return makers.at(name).make(std::move(wrap));
}

}  // namespace gyre
