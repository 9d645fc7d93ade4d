#include "gyre/report/html/study_part.h"

#include <fmt/format.h>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_fields.h"

namespace gyre {

namespace fs = std::filesystem;

nlohmann::ordered_json study_page(const fs::path& directory) {
  const fs::path path = directory / "results.json";
  if (!is_there(path))
    return {{"study", fs::absolute(directory / "").lexically_normal().parent_path().filename().string()}};
  const auto results = parse_json<nlohmann::ordered_json>(read_file(path));
  const bool has_arms = results && results->is_object() && results->contains("arms") && results->at("arms").is_array();
  if (!has_arms) throw InputError(fmt::format("{}: is not what gyre study wrote; run the study again", path.string()));
  return *results;
}

}  // namespace gyre
