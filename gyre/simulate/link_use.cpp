#include "gyre/simulate/link_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gyre/core/text.h"

namespace gyre {
namespace {

void add(const LinkUse& use, const Simulation& simulation, ClassUse& sum) {
  ++sum.links;
  const double share = simulation.per_time(use.busy);
  const auto microbatches = static_cast<double>(simulation.microbatches);
  const double bytes = use.of(MessageKind::Activation) + use.of(MessageKind::Gradient);
  const double update_bytes = use.total() - bytes;
  const double all = (bytes + update_bytes) / microbatches;
  if (sum.links > 1 &&
      std::pair(share, all) <= std::pair(sum.busy_share, sum.bytes_per_microbatch + sum.update_bytes_per_microbatch))
    return;
  sum.from = use.from;
  sum.to = use.to;
  sum.bytes_per_microbatch = bytes / microbatches;
  sum.update_bytes_per_microbatch = update_bytes / microbatches;
  sum.busy_share = share;
}

}  // namespace

std::vector<ClassUse> use_by_class(const Simulation& simulation, const WorkerPlaces& places) {
  const auto& classes = places.cluster().links;
  std::vector<ClassUse> sums(classes.size() + 1);
  sums[0].name = "process";
  for (size_t i = 0; i < classes.size(); ++i) sums[i + 1].name = classes[i].name;
  for (const LinkUse& use : simulation.links) {
    const LinkClass* link = places.link(use.from, use.to);
    add(use, simulation, sums[link == nullptr ? 0 : static_cast<size_t>(link - classes.data()) + 1]);
  }
  std::erase_if(sums, [](const ClassUse& use) { return use.links == 0; });
  return sums;
}

nlohmann::ordered_json to_json(const ClassUse& use) {
  return {{"class", use.name},
          {"links", use.links},
          {"busiest", {use.from, use.to}},
          {"bytes_per_microbatch", use.bytes_per_microbatch},
          {"update_bytes_per_microbatch", use.update_bytes_per_microbatch},
          {"busy_share", use.busy_share}};
}

std::string describe(const ClassUse& use) {
  std::string text = fmt::format("{}: {}; the busiest, from worker {} to {}, carries {} a microbatch", use.name,
                                 counted(use.links, "link"), use.from, use.to, human_bytes(use.bytes_per_microbatch));
  if (use.update_bytes_per_microbatch > 0) {
    text += fmt::format(" and {} of updates", human_bytes(use.update_bytes_per_microbatch));
  }
  return text + fmt::format(", {:.1f}% of the time", 100 * use.busy_share);
}

}  // namespace gyre
