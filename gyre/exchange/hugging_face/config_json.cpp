#include "gyre/exchange/hugging_face/config_json.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

void check(const ModelSettings& settings, const std::string& origin) {
  try {
    check_model(settings);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: describes a model that gyre does not have: {}", origin, error.what()));
  }
}

// The fields of `earlier` but for those that tell which program and which files it was for. Empty if it is not of the
// family.
Json kept_of(const std::string& earlier, const Family& family) {
  if (model_type_of(earlier) != family.model_type) return Json::object();
  Json kept = *parse_json<Json>(earlier);
  for (const char* key : {"transformers_version", "_name_or_path", "dtype", "quantization_config"}) kept.erase(key);
  return kept;
}

// For a field that is missing, transformers takes the number that the family's first model had, and generate() would
// stop at that token.
void write_tokens(const OwnTokens& own, Json& config) {
  std::vector<std::string> old;
  for (const auto& [key, value] : config.items()) {
    if (key.ends_with("_token_id")) old.push_back(key);
  }
  for (const std::string& key : old) config.erase(key);
  config["bos_token_id"] = nullptr;
  config["eos_token_id"] = own.end_of_document ? Json(*own.end_of_document) : Json();
  config["pad_token_id"] = nullptr;
}

}  // namespace

DescribedModel parse_config_json(std::string_view text, const std::string& origin) {
  const auto json = parse_json(text);
  if (!json) throw InputError(fmt::format("{}: is not JSON", origin));
  ConfigFields config(*json, origin);
  DescribedModel model;
  model.family = &family_of(config);
  config.only("quantization_config", nullptr);
  config.only("pruned_heads", nlohmann::json::object());
  model.settings.kind = model.family->kind;
  model.settings.vocabulary = config.whole("vocab_size");
  model.settings.tie = config.flag("tie_word_embeddings", model.family->tied_unless_said);
  model.family->read(config, model.settings);
  if (model.settings.mlp_width == 0) config.fail("the size of the MLP is 0");
  check(model.settings, origin);
  return model;
}

std::string model_type_of(std::string_view text) {
  const auto json = parse_json(text);
  if (!json || !json->is_object()) return "";
  const auto found = json->find("model_type");
  return found != json->end() && found->is_string() ? found->get<std::string>() : "";
}

std::string to_config_json(const Family& family, const ModelSettings& settings, const std::string& dtype,
                           const std::optional<std::string>& earlier, const std::optional<OwnTokens>& own) {
  Json config = earlier ? kept_of(*earlier, family) : Json::object();
  if (!config.contains("architectures")) config["architectures"] = {family.architectures.front()};
  config["model_type"] = family.model_type;
  family.write(settings, config);
  config["tie_word_embeddings"] = settings.tie;
  config["torch_dtype"] = dtype;
  if (own) write_tokens(*own, config);
  return config.dump(2) + "\n";
}

}  // namespace gyre
