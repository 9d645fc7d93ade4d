#include "gyre/checkpoint/format/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/files.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/json_text.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;
constexpr int64_t kVersion = 1;         // every part in one file
constexpr int64_t kShardedVersion = 2;  // some part in several files
constexpr int64_t kPlacesVersion = 3;   // some files on other hosts

// Adds to the text of an object, as its last key, the checksum of that text.
std::string sealed(std::string object) {
  const std::string checksum = text_checksum(object);
  object.pop_back();
  return fmt::format("{},\"checksum\":\"{}\"}}\n", object, checksum);
}

// The inverse, which checks the checksum before anything else is looked at.
std::string unsealed(std::string_view text) {
  const size_t seal = text.rfind(",\"checksum\":\"");
  if (seal == std::string_view::npos) throw InputError("is not a manifest that gyre writes");
  std::string object = std::string(text.substr(0, seal)) + "}";
  if (sealed(object) != text) throw InputError("its checksum differs");
  return object;
}

int64_t version_of(const Manifest& manifest) {
  if (!manifest.places.empty()) return kPlacesVersion;
  const bool is_sharded = std::any_of(std::begin(kParts), std::end(kParts),
                                      [&](Part part) { return manifest.files.count(index_name(part)) > 0; });
  return is_sharded ? kShardedVersion : kVersion;
}

}  // namespace

std::vector<std::string> shards_of(const Manifest& manifest, Part part) {
  std::vector<std::string> names;
  for (const auto& [name, file] : manifest.files) names.push_back(name);
  return shards_among(names, part);
}

std::string to_text(const Manifest& manifest) {
  const CheckpointRecord& record = manifest.record;
  Json json = {{"format", "gyre-checkpoint"}, {"version", version_of(manifest)},
               {"step", record.step},         {"microbatches", record.microbatches},
               {"tokens", record.tokens},     {"seed", record.seed},
               {"drains", record.drains},     {"model", record.model},
               {"delay", record.delay},       {"skipped", record.skipped},
               {"data", record.data}};
  if (!record.skipped_in_a_row.empty()) json["skipped_in_a_row"] = record.skipped_in_a_row;
  if (const MixtureRecord& mixture = record.mixture; !mixture.shares.empty()) {
    json["mixture"] = {{"since", mixture.since}, {"shares", mixture.shares}, {"used", mixture.used}};
  }
  for (const auto& [name, file] : manifest.files) {
    json["files"][name] = {{"bytes", file.bytes}, {"checksum", file.checksum}};
  }
  for (const auto& [name, place] : manifest.places) {
    json["files"][name]["host"] = place.host;
    json["files"][name]["directory"] = place.directory;
  }
  return sealed(json_text(json));
}

namespace {

// For each stage a list of pairs [delay, microbatches].
void read_delay(JsonFields<Json>& fields, std::vector<std::map<int64_t, int64_t>>& delay) {
  std::vector<std::vector<std::vector<int64_t>>> stages;
  fields.read("delay", stages);  // a gyre before 0.1 wrote none
  for (const auto& pairs : stages) {
    auto& histogram = delay.emplace_back();
    for (const auto& pair : pairs) {
      if (pair.size() != 2 || !histogram.emplace(pair[0], pair[1]).second) fields.fail("'delay' must have pairs");
    }
  }
}

void read_mixture(const Json& json, MixtureRecord& mixture) {
  JsonFields<Json> fields(json, "its mixture");
  fields.need("since", mixture.since);
  fields.need("shares", mixture.shares);
  fields.need("used", mixture.used);
  int64_t left = kMixturePattern;
  for (const auto& [name, share] : mixture.shares) {
    if (share < 1 || share > left) fields.fail(fmt::format("'shares' must be of {}", kMixturePattern));
    if (mixture.used.count(name) == 0) fields.fail("'used' must have every source");
    left -= share;
  }
  if (left > 0) fields.fail(fmt::format("'shares' must be of {}", kMixturePattern));
}

// Each part must have its one file, or all of its several with their index, and there must be no other file.
void read_files(const Json& files, Manifest& manifest) {
  JsonFields<Json> fields(files, "its files");
  for (const auto& [name, value] : files.items()) {
    JsonFields<Json> file(value, name);
    manifest.files[name] = {file.need<uint64_t>("bytes"), file.need<std::string>("checksum")};
    FilePlace place;
    const bool has_host = file.read("host", place.host);
    if (file.read("directory", place.directory) != has_host) file.fail("'host' and 'directory' go together");
    if (has_host) manifest.places[name] = place;
  }
  for (const Part part : kParts) {
    const auto shards = shards_of(manifest, part);
    for (const std::string& shard : shards) fields.find(shard.c_str());
    if (shards.size() > 1) fields.find(index_name(part).c_str());
  }
  fields.reject_unknown();
}

}  // namespace

Manifest parse_manifest(std::string_view text) {
  const auto json = parse_json<Json>(unsealed(text));
  if (!json) throw InputError("is not JSON");
  JsonFields<Json> fields(*json, "its content");
  const auto version = fields.need<int64_t>("version");
  if (version < kVersion) throw InputError(fmt::format("version {} is unknown", version));
  if (version > kPlacesVersion) {
    throw NewerManifest(fmt::format("version {} is newer than this gyre understands", version));
  }
  Manifest manifest;
  CheckpointRecord& record = manifest.record;
  fields.need("step", record.step);
  fields.need("microbatches", record.microbatches);
  fields.need("tokens", record.tokens);
  fields.need("seed", record.seed);
  fields.need("drains", record.drains);
  record.model = fields.at("model");
  read_delay(fields, record.delay);
  fields.read("skipped", record.skipped);
  fields.read("skipped_in_a_row", record.skipped_in_a_row);
  fields.read("data", record.data);
  if (const Json* mixture = fields.find("mixture")) read_mixture(*mixture, record.mixture);
  read_files(fields.at("files"), manifest);
  return manifest;
}

}  // namespace gyre
