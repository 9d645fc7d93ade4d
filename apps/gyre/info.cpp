// gyre info: what this build has and what machine it sees.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "command.h"
#include "gyre/core/cores.h"
#include "gyre/core/text.h"
#include "gyre/kernels/linear.h"
#include "gyre/model/settings/model_kind.h"
#include "gyre/optim/config.h"
#include "gyre/runtime/settings/executor_kind.h"
#include "gyre/schedule/builders.h"
#include "gyre/tensors/device.h"
#include "gyre/tensors/device_memory.h"
#include "gyre/tokenizers/tokenizer.h"
#include "output.h"

namespace gyre::app {
namespace {

// The devices that [pipeline] device can name, with their memory.
std::vector<std::string> device_names() {
  std::vector<std::string> names = {"cpu"};
  for (const at::Device device : all_devices()) {
    const auto memory = device_memory(device);
    names.push_back(device.str() +
                    (memory ? fmt::format(" ({})", human_bytes(static_cast<double>(memory->total))) : ""));
  }
  return names;
}

nlohmann::ordered_json describe() {
  return {{"version", GYRE_VERSION},
          {"libtorch", TORCH_VERSION},
          {"cores", usable_core_count()},
          {"bf16_products", bf16_products()},
          {"devices", device_names()},
          {"schedules", schedule_names()},
          {"executors", executor_kinds().names()},
          {"optimizers", optimizer_kinds().names()},
          {"models", model_kinds().names()},
          {"tokenizers", tokenizer_names()}};
}

void run(bool json) {
  const nlohmann::ordered_json description = describe();
  if (json) {
    print_object(description);
    return;
  }
  for (const auto& [key, value] : description.items()) {
    const std::string text = value.is_array()    ? join(value.get<std::vector<std::string>>(), ", ")
                             : value.is_string() ? value.get<std::string>()
                                                 : value.dump();
    print("{:<15} {}\n", key, text);
  }
}

}  // namespace

void add_info(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(kInfo.name, kInfo.meaning);
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([json] { run(*json); });
}

}  // namespace gyre::app
