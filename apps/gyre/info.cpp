// gyre info: what this build has and what machine it sees.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
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

// The devices that [pipeline] device can name.
std::vector<std::string> device_names() {
  std::vector<std::string> names = {"cpu"};
  for (const at::Device device : all_devices()) names.push_back(device.str());
  return names;
}

// Of those whose memory is known, in bytes.
nlohmann::ordered_json device_bytes() {
  nlohmann::ordered_json bytes = nlohmann::ordered_json::object();
  for (const at::Device device : all_devices()) {
    if (const auto memory = device_memory(device)) bytes[device.str()] = memory->total;
  }
  return bytes;
}

std::string to_text(const nlohmann::ordered_json& value) {
  if (value.is_array()) return join(value.get<std::vector<std::string>>(), ", ");
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : value.items()) parts.push_back(name + " " + human_bytes(bytes.get<double>()));
  return parts.empty() ? "-" : join(parts, ", ");
}

nlohmann::ordered_json describe() {
  return {{"version", GYRE_VERSION},
          {"libtorch", TORCH_VERSION},
          {"cores", usable_core_count()},
          {"bf16_products", bf16_products()},
          {"fp32_products", fp32_products()},
          {"devices", device_names()},
          {"device_memory", device_bytes()},
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
  for (const auto& [key, value] : description.items()) print("{:<15} {}\n", key, to_text(value));
}

}  // namespace

void add_info(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(kInfo.name, kInfo.meaning);
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([json] { run(*json); });
}

}  // namespace gyre::app
