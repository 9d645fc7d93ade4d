// How `gyre plan --cluster` tells a plan: the table of alternatives with what each loses, and what to start.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gyre/cluster/cluster.h"
#include "gyre/config/config.h"
#include "gyre/plan/planner.h"

namespace gyre::app {

// What a cluster adds to a row's JSON.
void add_cluster_fields(const PlanRow& row, nlohmann::ordered_json& json);

// The first `rows`, and then the fastest: its keys of the configuration, what it needs of the network, its command.
std::string describe_plan(const Plan& plan, size_t rows, const Cluster& cluster, const Config& config,
                          const std::string& config_file);

// What a plan's row needs of a network, where each replica does so many microbatches a second.
std::string describe_need(const PlanRow& row, double microbatches_per_second);

// [pipeline], and the table of the schedule's own options.
std::string pipeline_lines(const PlanRow& row, double tb_over_tf);
// The command that starts it on these hosts.
std::string launch_command(const PlanRow& row, const Cluster& cluster, const std::string& config_file);

}  // namespace gyre::app
