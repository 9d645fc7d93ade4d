#include "gyre/exchange/hugging_face/family.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/core/json_text.h"
#include "gyre/core/text.h"

namespace gyre {

const std::vector<Family>& families() {
  static const std::vector<Family> all = {bert_family(),    gpt2_family(),  llama_family(),
                                          mistral_family(), qwen2_family(), qwen3_family()};
  return all;
}

const Family& family_of(ConfigFields& config) {
  std::vector<std::string> known;
  for (const Family& family : families()) known.push_back(family.model_type);
  const std::string type = config.word("model_type", "");
  if (type.empty()) config.fail("'model_type' is missing: is it the config.json of a model of transformers?");
  const auto found = std::find(known.begin(), known.end(), type);
  if (found == known.end()) {
    config.fail(fmt::format("'model_type' is \"{}\"; gyre has {}", printable(type), join(known, ", ")));
  }
  const Family& family = families()[static_cast<size_t>(found - known.begin())];
  const nlohmann::json* const named = config.find("architectures");
  if (named == nullptr) return family;
  if (!named->is_array()) config.fail("'architectures' must be a list");
  const auto is_ours = [&](const nlohmann::json& name) {
    return std::any_of(family.architectures.begin(), family.architectures.end(),
                       [&](const std::string& ours) { return name == ours; });
  };
  if (named->empty() || std::any_of(named->begin(), named->end(), is_ours)) return family;
  config.fail(fmt::format("'architectures' is {}; of {} gyre has {}", printable(json_text(*named)), type,
                          join(family.architectures, ", ")));
}

const Family& family_of(const ModelSettings& settings, std::string_view wanted) {
  const Family* first = nullptr;
  std::vector<std::string> reasons;
  for (const Family& family : families()) {
    if (family.kind != settings.kind) continue;
    const std::string reason = family.misfit == nullptr ? std::string() : family.misfit(settings);
    if (!reason.empty()) {
      reasons.push_back(reason);
    } else if (first == nullptr || family.model_type == wanted) {
      first = &family;
    }
  }
  if (first != nullptr) return *first;
  if (reasons.empty()) reasons.push_back(fmt::format("it has no counterpart of [model] kind = \"{}\"", settings.kind));
  throw InputError(fmt::format("transformers has no such model: {}", join(reasons, "; ")));
}

}  // namespace gyre
