// config.json of transformers' models: an accepted one is a model that gyre supports, and is written back the same.
#include "gyre/exchange/hugging_face/config_json.h"
#include "fuzz/targets.h"

namespace gyre::fuzz {

void config_json(std::string_view input) {
  const auto model = accepted([&] { return parse_config_json(input, "input"); });
  if (!model) return;
  check_model(model->settings);
  const std::string written = to_config_json(*model->family, model->settings, "float32", std::string(input));
  const DescribedModel again = parse_config_json(written, "written");
  require(again.family == model->family, "a model stays of its family");
  require(again.settings == model->settings, "a model comes back the same");
}

}  // namespace gyre::fuzz
