#include "gyre/runtime/ranks/rank_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace gyre {

using Json = nlohmann::json;

std::string to_string(const WorkerStatus& worker) {
  if (worker.action.empty()) return fmt::format("worker {} has finished", worker.worker);
  if (worker.inside) return fmt::format("worker {} inside {}", worker.worker, worker.action);
  const std::string waiting = worker.needs.empty() ? "" : ", waiting for " + worker.needs;
  return fmt::format("worker {} at {}{}", worker.worker, worker.action, waiting);
}

std::string to_string(const std::vector<WorkerStatus>& workers) {
  std::vector<std::string> lines;
  for (const WorkerStatus& worker : workers) lines.push_back(to_string(worker));
  return fmt::format("{}", fmt::join(lines, "; "));
}

// Lists of the fields' values, in a fixed order.
std::string to_json(const RankStatus& status) {
  const ProcessMemory& memory = status.memory;
  Json json = {status.steps, status.computing,
               status.stop,  {memory.resident, memory.peak_resident, memory.tensors, memory.peak_tensors},
               status.parts, Json::array()};
  for (const WorkerStatus& worker : status.workers) {
    Json waited = Json::array(), delays = Json::array();
    for (const auto& [other, seconds] : worker.waited) waited.push_back({other, seconds});
    for (const auto& [stage, seen] : worker.delays) delays.push_back({stage, seen.sum, seen.gradients});
    json.back().push_back({worker.worker, worker.inside, worker.action, worker.needs, worker.seconds, waited, delays,
                           worker.activations, worker.gradients, worker.others});
  }
  return json.dump();
}

RankStatus parse_rank_status(const std::string& text) {
  const Json json = Json::parse(text);
  RankStatus status;
  json.at(0).get_to(status.steps);
  json.at(1).get_to(status.computing);
  json.at(2).get_to(status.stop);
  const Json& memory = json.at(3);
  memory.at(0).get_to(status.memory.resident);
  memory.at(1).get_to(status.memory.peak_resident);
  memory.at(2).get_to(status.memory.tensors);
  memory.at(3).get_to(status.memory.peak_tensors);
  json.at(4).get_to(status.parts);
  for (const Json& fields : json.at(5)) {
    WorkerStatus& worker = status.workers.emplace_back();
    fields.at(0).get_to(worker.worker);
    fields.at(1).get_to(worker.inside);
    fields.at(2).get_to(worker.action);
    fields.at(3).get_to(worker.needs);
    fields.at(4).get_to(worker.seconds);
    for (const Json& wait : fields.at(5)) worker.waited[wait.at(0).get<int>()] = wait.at(1).get<double>();
    for (const Json& seen : fields.at(6)) {
      worker.delays[seen.at(0).get<int>()] = {seen.at(1).get<double>(), seen.at(2).get<int64_t>()};
    }
    fields.at(7).get_to(worker.activations);
    fields.at(8).get_to(worker.gradients);
    fields.at(9).get_to(worker.others);
  }
  return status;
}

}  // namespace gyre
