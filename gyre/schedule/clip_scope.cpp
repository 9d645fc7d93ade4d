#include "gyre/schedule/clip_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/option_range.h"

namespace gyre {
namespace {
constexpr std::pair<ClipScope, std::string_view> kScopes[] = {
    {ClipScope::Auto, "auto"}, {ClipScope::Global, "global"}, {ClipScope::Stage, "stage"}, {ClipScope::None, "none"}};
}  // namespace

std::vector<std::string> clip_scopes() {
  std::vector<std::string> names;
  for (const auto& [scope, name] : kScopes) names.emplace_back(name);
  return names;
}

ClipScope parse_clip_scope(const std::string& name, const std::string& where) {
  check_range(where, name, one_of(clip_scopes()));
  return std::ranges::find(kScopes, name, [](const auto& known) { return known.second; })->first;
}

void set_clip_scope(Schedule& schedule, ClipScope scope) {
  schedule.global_norm =
      scope == ClipScope::Global || (scope == ClipScope::Auto && schedule.has_flush() && !early_change(schedule));
}

void check_clipping(const Schedule& schedule, bool by_flag) {
  if (!schedule.global_norm) return;
  const auto scope = [by_flag](const char* name) {
    return by_flag ? fmt::format("--clip-scope {}", name) : fmt::format("clip_scope = \"{}\"", name);
  };
  const std::string global = by_flag ? scope("global") : "[optimizer] " + scope("global");
  if (!schedule.has_flush()) {
    throw InputError(
        fmt::format("{} needs a schedule with a flush (one that waits for each update), and {} has none; use {}",
                    global, schedule.name, scope("stage")));
  }
  if (const auto early = early_change(schedule)) {
    throw InputError(
        fmt::format("{} makes updates wait for all gradients of their window, and in schedule {} a worker does {} "
                    "before {}; use {}",
                    global, schedule.name, to_string(early->change, schedule.pipelines),
                    to_string(early->backward, schedule.pipelines), scope("stage")));
  }
}

}  // namespace gyre
