// meta.json of prepared data.
#include "fuzz/targets.h"
#include "gyre/data/dataset.h"

namespace gyre::fuzz {

void meta(std::string_view input) {
  const auto meta = accepted([&] { return DatasetMeta::parse(input, "input"); });
  if (meta) require(DatasetMeta::parse(meta->to_json(), "written") == *meta, "meta.json comes back the same");
}

}  // namespace gyre::fuzz
