#include "gyre/checkpoint/format/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"

namespace gyre {
namespace {

// 0 if it is not there or not a whole number: other programs may leave the metadata out, and their readers do not look.
uint64_t size_in(const nlohmann::json* metadata) {
  if (metadata == nullptr || !metadata->is_object()) return 0;
  const auto size = metadata->find("total_size");
  return size != metadata->end() && size->is_number_unsigned() ? size->get<uint64_t>() : 0;
}

}  // namespace

std::string to_string(Part part) {
  return part == Part::Model ? "model" : "optimizer";
}

std::string shard_name(Part part, ShardNumber shard) {
  if (shard.count == 1) return to_string(part) + ".safetensors";
  return fmt::format("{}-{:05}-of-{:05}.safetensors", to_string(part), shard.number, shard.count);
}

std::string index_name(Part part) {
  return to_string(part) + ".safetensors.index.json";
}

std::string to_text(const ShardIndex& index) {
  const nlohmann::json json = {{"metadata", {{"total_size", index.total_size}}}, {"weight_map", index.weight_map}};
  return json.dump(2) + "\n";
}

ShardIndex parse_shard_index(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) throw InputError("is not JSON");
  JsonFields fields(*json, "its content");
  ShardIndex index;
  index.total_size = size_in(fields.find("metadata"));
  fields.need("weight_map", index.weight_map);
  return index;
}

std::vector<std::string> shards_among(const std::vector<std::string>& names, Part part) {
  const auto is_there = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::string begin = to_string(part) + "-";
  const auto several =
      std::count_if(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(begin); });
  const int count = several == 0 ? 1 : static_cast<int>(several);
  std::vector<std::string> needed;
  for (int number = 1; number <= count; ++number) needed.push_back(shard_name(part, {number, count}));
  std::vector<std::string> required = needed;
  if (several > 0) required.push_back(index_name(part));
  for (const std::string& name : required) {
    if (!is_there(name)) throw InputError(fmt::format("its files: '{}' is missing", name));
  }
  return needed;
}

}  // namespace gyre
