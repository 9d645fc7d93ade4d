#include "gyre/exchange/hugging_face/provenance.h"

#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/json_fields.h"

namespace gyre {

std::string to_text(const Provenance& provenance) {
  return nlohmann::json(provenance.dtypes).dump(2) + "\n";
}

Provenance parse_provenance(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) throw InputError("is not JSON");
  const nlohmann::json object = {{"dtypes", *json}};
  JsonFields fields(object, "its content");
  Provenance provenance;
  fields.need("dtypes", provenance.dtypes);
  return provenance;
}

}  // namespace gyre
