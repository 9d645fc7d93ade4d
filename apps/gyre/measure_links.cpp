// gyre launch -n N -- measure-links: what messages between the ranks cost, as cluster.toml.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "command.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/host_name.h"
#include "gyre/core/memory_limit.h"
#include "gyre/core/message.h"
#include "gyre/core/text.h"
#include "gyre/inspect/link_profile.h"
#include "launched_ranks.h"
#include "measure_links_flags.h"
#include "output.h"

namespace gyre::app {
namespace {

const std::string kHeader =
    "# Written by gyre measure-links; docs/simulation.md explains it. The bandwidth between hosts is that of one "
    "stream,\n"
    "# and is taken for all that a host's port has: where each worker has a port of its own, shared = false.\n\n";

// If this rank fails, those that wait for it are told why.
std::optional<Cluster> profile(Ranks& ranks) {
  LinkProfileOptions options;
  options.host = host_name();
  const double memory = memory_limit().bytes;
  options.memory = std::isfinite(memory) ? memory : 0;
  try {
    return profile_links(ranks, options);
  } catch (const std::exception& error) {  // also libtorch's
    ranks.refuse(error);
    throw;
  }
}

void run(const MeasureLinksFlags& flags) {
  const auto own_rank = find_rank();
  if (!own_rank || own_rank->world == 1) {
    throw InputError("gyre measure-links needs several ranks: gyre launch -n 2 -- measure-links");
  }
  const auto ranks = make_ranks(*own_rank, flags.meeting, {}, end_at_once);
  const auto cluster = profile(*ranks);
  if (!cluster) return;
  if (!ranks->network().empty()) say_lines(stderr, "network    " + ranks->network());
  write_file_atomic(flags.out, kHeader + to_toml(*cluster));
  tell_launcher_done(*own_rank);
  print("{} ranks on {}\n", own_rank->world, counted(std::ssize(cluster->hosts), "host"));
  for (const LinkClass& link : cluster->links) {
    print("{}: {:.1f} us, {}/s\n", link.name, 1e6 * link.latency, human_bytes(link.bandwidth));
  }
  print("written to {}\n", printable(flags.out));
}

}  // namespace

void add_measure_links(CLI::App& app) {
  auto flags = std::make_shared<MeasureLinksFlags>();
  CLI::App* command = app.add_subcommand(kMeasureLinks.name, kMeasureLinks.meaning);
  declare_measure_links_flags(*command, *flags);
  command->callback([flags] { run(*flags); });
}

}  // namespace gyre::app
