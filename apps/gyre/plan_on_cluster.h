// Describes the plan of `gyre plan --cluster`: the table of alternatives with what each loses, and the command to
// start.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gyre/cluster/cluster.h"
#include "gyre/config/config.h"
#include "gyre/plan/planner.h"

namespace gyre::app {

// Adds to a row's JSON what only a plan on a cluster has.
void add_cluster_fields(const PlanRow& row, nlohmann::ordered_json& json);

// The first `rows` of the plan, and then the fastest: its configuration keys, what it needs of the network, its
// command.
std::string describe_plan(const Plan& plan, size_t rows, const Cluster& cluster, const Config& config,
                          const std::string& config_file, const std::vector<std::string>& overrides);

// Stands in a table before row i if that is the first with a larger update than was asked for; otherwise empty.
std::string line_before(const Plan& plan, size_t i);

// What a row of a plan needs of a network if each replica does so many microbatches a second.
std::string describe_need(const PlanRow& row, double microbatches_per_second);

// The table [pipeline], and the table of the schedule's own options.
std::string pipeline_lines(const PlanRow& row, double tb_over_tf);
// The configuration's file and its overrides as a shell takes them, without those of keys that pipeline_lines() has:
// they would win over what is written there.
std::string words_of_configuration(const std::string& config_file, const std::vector<std::string>& overrides,
                                   const PlanRow& row);
// The command that starts the row on these hosts.
std::string launch_command(const PlanRow& row, const Cluster& cluster, const std::string& config_words);

}  // namespace gyre::app
