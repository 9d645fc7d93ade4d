#include "gyre/simulate/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_fields.h"
#include "gyre/schedule/limits.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "gyre-costs 1";

// These limits keep sums of times finite and what a worker holds within an int64. What a run sends has no limit: it is
// counted in doubles.
constexpr double kMostTime = 1e15;
constexpr int64_t kMostTokens = int64_t{1} << 40;
constexpr int64_t kMostBytesHeld = int64_t{1} << 60;

template <typename SomeCost, typename Visit>
void for_each_field(SomeCost& cost, Visit&& visit) {
  visit("forward", cost.forward);
  visit("backward", cost.backward);
  visit("backward_input", cost.backward_input);
  visit("backward_weights", cost.backward_weights);
  visit("update", cost.update);
  visit("adopt", cost.adopt);
  visit("output_bytes", cost.output_bytes);
  visit("activation_bytes", cost.activation_bytes);
  visit("split_bytes", cost.split_bytes);
  visit("passing_bytes", cost.passing_bytes);
  visit("update_bytes", cost.update_bytes);
  visit("replaced_bytes", cost.replaced_bytes);
  visit("weight_bytes", cost.weight_bytes);
  visit("gradient_bytes", cost.gradient_bytes);
  visit("optimizer_bytes", cost.optimizer_bytes);
  visit("tied_bytes", cost.tied_bytes);
}

}  // namespace

double CostModel::duration(const Action& action) const {
  const StageCost& cost = stage(action.stage);
  switch (action.kind) {
    case ActionKind::Forward:
      return cost.forward;
    case ActionKind::Backward:
      return cost.backward;
    case ActionKind::BackwardInput:
      return cost.backward_input;
    case ActionKind::BackwardWeights:
      return cost.backward_weights;
    case ActionKind::Update:
      return cost.update;
    case ActionKind::Adopt:
      return cost.adopt;
  }
  return 0;
}

int64_t CostModel::message_bytes(MessageKind kind, int sender) const {
  switch (kind) {
    case MessageKind::Activation:
      return stage(sender).output_bytes;
    case MessageKind::Gradient:
      return sender > 0 ? stage(sender - 1).output_bytes : 0;
    case MessageKind::Reduction:
    case MessageKind::Sum:
      return stage(sender).gradient_bytes;
    case MessageKind::Version:
      return stage(sender).weight_bytes;
    case MessageKind::TiedWeight:
    case MessageKind::TiedSum:
      return stage(sender).tied_bytes;
  }
  return 0;
}

CostModel uniform_costs(double tb_over_tf) {
  StageCost cost;
  cost.forward = 1;
  cost.backward = tb_over_tf;
  cost.backward_input = cost.backward_weights = tb_over_tf / 2;
  CostModel model;
  model.stages = {cost};
  return model;
}

std::string to_json(const CostModel& costs) {
  Json json = {{"format", kFormat}, {"tokens_per_microbatch", costs.tokens_per_microbatch}};
  json["link"]["latency"] = costs.link.latency;
  if (std::isfinite(costs.link.bandwidth)) json["link"]["bandwidth"] = costs.link.bandwidth;
  if (costs.checkpoint > 0) json["checkpoint"] = costs.checkpoint;
  json["stages"] = Json::array();
  for (const StageCost& cost : costs.stages) {
    Json entry;
    for_each_field(cost, [&](const char* key, const auto& field) { entry[key] = field; });
    json["stages"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

namespace {

// Reads a field. A time longer than kMostTime is an error.
template <typename T>
void read_bounded(JsonFields<>& fields, const char* key, T& field) {
  fields.read(key, field);
  if constexpr (std::is_same_v<T, double>) {
    if (field > kMostTime) fields.fail(fmt::format("'{}' is {}; give 0 to {}", key, field, kMostTime));
  }
}

// Where the text stops being JSON: " at line 3". Empty if it is nested too deeply or the place is unknown.
std::string line_of_fault(std::string_view text) {
  if (is_nested_too_deeply(text)) return "";
  try {
    [[maybe_unused]] const auto json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string_view sound = text.substr(0, error.byte > 0 ? error.byte - 1 : 0);
    return fmt::format(" at line {}", 1 + std::count(sound.begin(), sound.end(), '\n'));
  } catch (const nlohmann::json::exception&) {  // a number is too large; the error has no place
  }
  return "";
}

}  // namespace

CostModel parse_costs(std::string_view text, const std::string& origin) {
  const auto json = parse_json(text);
  if (!json) throw InputError(fmt::format("{}: not JSON{}", origin, line_of_fault(text)));
  JsonFields root(*json, origin);
  const nlohmann::json* format = root.find("format");
  if (format == nullptr || *format != kFormat) root.fail(fmt::format("expected \"format\": \"{}\"", kFormat));
  CostModel costs;
  root.read("tokens_per_microbatch", costs.tokens_per_microbatch);
  read_bounded(root, "checkpoint", costs.checkpoint);
  const nlohmann::json* stages = root.find("stages");
  const nlohmann::json* link_object = root.find("link");
  root.reject_unknown();
  if (link_object != nullptr) {
    JsonFields link(*link_object, origin + ": link");
    read_bounded(link, "latency", costs.link.latency);
    link.read("bandwidth", costs.link.bandwidth);
    link.reject_unknown();
    if (costs.link.bandwidth == 0) link.fail("bandwidth is 0; leave it out for a free link");
    if (costs.link.bandwidth < 1 / kMostTime) {  // a byte would take longer than any time may be
      link.fail(fmt::format("bandwidth is {}; give {} or more", costs.link.bandwidth, 1 / kMostTime));
    }
  }
  if (stages == nullptr || !stages->is_array() || stages->empty()) {
    root.fail("expected \"stages\": a list with one entry for each stage, or one for all");
  }
  if (std::ssize(*stages) > kMostStages)
    root.fail(fmt::format("has {} stages; give 1 to {}", stages->size(), kMostStages));
  if (costs.tokens_per_microbatch > kMostTokens) {
    root.fail(fmt::format("'tokens_per_microbatch' is {}; give 0 to {}", costs.tokens_per_microbatch, kMostTokens));
  }
  for (const nlohmann::json& entry : *stages) {
    JsonFields reader(entry, fmt::format("{}: stages[{}]", origin, costs.stages.size()));
    StageCost cost;
    for_each_field(cost, [&](const char* key, auto& field) { read_bounded(reader, key, field); });
    reader.reject_unknown();
    if (!entry.contains("forward") || !entry.contains("backward")) reader.fail("forward and backward are needed");
    if (!entry.contains("backward_input")) cost.backward_input = cost.backward / 2;
    if (!entry.contains("backward_weights")) {
      cost.backward_weights = cost.backward - cost.backward_input;
      if (cost.backward_weights < 0) reader.fail("backward_input is more than backward; give backward_weights too");
    }
    costs.stages.push_back(cost);
  }
  const auto is_free = [](const StageCost& cost) { return cost.forward + cost.backward == 0; };
  if (std::ranges::all_of(costs.stages, is_free)) root.fail("forward and backward are 0 in every stage");
  return costs;
}

CostModel load_costs(const std::filesystem::path& path) {
  std::error_code none;
  const auto file = std::filesystem::is_directory(path, none) ? path / "costs.json" : path;
  return parse_costs(read_file(file), file.string());
}

namespace {

// Times may be counts of operations, which are beyond those of files.
void check_time(const char* what, double time) {
  if (time >= 0 && std::isfinite(time)) return;
  throw InputError(fmt::format("the costs' {} is {}; give a finite number, 0 or more", what, time));
}

void check_link_and_run(const CostModel& costs) {
  check_time("link latency", costs.link.latency);
  if (!(costs.link.bandwidth > 0)) {
    throw InputError(fmt::format("the costs' link bandwidth is {}; give more than 0", costs.link.bandwidth));
  }
  check_time("checkpoint", costs.checkpoint);
  if (costs.tokens_per_microbatch < 0 || costs.tokens_per_microbatch > kMostTokens) {
    throw InputError(
        fmt::format("the costs' tokens_per_microbatch is {}; give 0 to {}", costs.tokens_per_microbatch, kMostTokens));
  }
}

}  // namespace

void check_costs(const CostModel& costs, const Schedule& schedule) {
  if (costs.stages.size() != 1 && costs.stages.size() != static_cast<size_t>(schedule.stages)) {
    throw InputError(fmt::format("the costs are of {} stages and the schedule has {}; measure them with as many",
                                 costs.stages.size(), schedule.stages));
  }
  check_link_and_run(costs);
  // A worker holds each size at most once for each action of its program.
  int64_t longest = 1;
  for (const Program& program : schedule.programs) {
    longest = std::max<int64_t>(longest, std::ssize(program.prologue) + 2 * std::ssize(program.period));
  }
  for (const StageCost& cost : costs.stages) {
    for_each_field(cost, [&](const char* key, const auto& field) {
      if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(field)>>) {
        if (field < 0) throw InputError(fmt::format("the costs' {} is {}; give 0 or more", key, field));
        if (field <= kMostBytesHeld / longest) return;
        throw InputError(fmt::format("{} is {}, and up to {} times that is more than any memory; give at most {}", key,
                                     field, longest, kMostBytesHeld / longest));
      } else {
        check_time(key, field);
      }
    });
  }
}

}  // namespace gyre
