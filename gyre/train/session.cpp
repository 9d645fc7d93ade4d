#include "gyre/train/session.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gyre/config/config.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/model/settings/special_tokens.h"
#include "gyre/runtime/settings/executor_kind.h"
#include "gyre/schedule/text.h"

namespace gyre {
namespace {

void check_executor(const Config& config, const Ranks* ranks) {
  if (ranks == nullptr || executor_kinds().at(config.pipeline.executor).side_by_side) return;
  throw InputError(
      fmt::format("[pipeline] executor = \"{}\" is one thread of one process, and {} processes were started; leave "
                  "it out, or start one",
                  config.pipeline.executor, ranks->world()));
}

// Hosts may have data at different places. What is there is compared by itself.
Config without_places(Config config) {
  const auto forget = [](std::string& path) {
    if (!path.empty()) path = "given";
  };
  for (std::string* path : {&config.data.tokens, &config.data.val_tokens, &config.data.tokenizer, &config.run.init_from,
                            &config.run.prometheus, &config.pipeline.schedule}) {
    forget(*path);
  }
  for (DataSource& source : config.data.source) {
    forget(source.tokens);
    forget(source.val_tokens);
  }
  return config;
}

}  // namespace

Config session_config(const TrainOptions& options, const RunDirectory& run) {
  const auto file = options.config.empty() ? run.config() : options.config;
  if (options.config.empty() && !run.has_run()) {
    throw InputError(
        fmt::format("{}: no run to resume is here (no config.toml); give the CONFIG.toml of one", run.root().string()));
  }
  Config config = load_config(file, options.overrides, Tokens::Needed, add_faults_of_run);
  if (options.resume && config.model.vocabulary == 0 && run.has_run()) {
    leave_as_begun(run.load_config().model, config.model);
  }
  check_executor(config, options.ranks);
  return config;
}

RankFacts facts_of(const CheckedRun& checked, const Pipeline& pipeline) {
  const Config config = without_places(checked.config);
  RankFacts facts = {{"build", file_checksum("/proc/self/exe")}};
  const auto tables = to_json(config);
  for (const auto& [table, keys] : tables.items()) {
    for (const auto& [key, value] : keys.items()) facts.emplace_back(fmt::format("[{}] {}", table, key), value.dump());
  }
  facts.emplace_back("configuration", text_checksum(to_toml(config)));  // also tables that only one of the two has
  facts.emplace_back("schedule", text_checksum(to_text(pipeline.schedule())));
  for (const auto& [file, checksum] : checked.dataset->identity()) facts.emplace_back(file, checksum);
  return facts;
}

void meet(Ranks& ranks, const RankMap& map, const CheckedRun& checked, const Pipeline& pipeline) {
  const double silence = checked.config.pipeline.stall_seconds;
  const WorkerRange own_workers = map.workers_of(ranks.rank());
  ranks.meet(facts_of(checked, pipeline), linked_ranks(pipeline, map), silence,
             make_device_channels(pipeline.options().device_of(own_workers.begin)));
}

}  // namespace gyre
