// Simulation on a cluster: against uniform links, hand-made examples and sums that must hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"
#include "gyre/simulate/link_use.h"
#include "gyre/simulate/simulator.h"

namespace gyre {
namespace {

Cluster cluster_of(int hosts, int64_t workers, const LinkCost& inside, const LinkCost& between) {
  Cluster cluster;
  cluster.settings.within_host = "inside";
  cluster.settings.between_hosts = "between";
  cluster.links = {{"inside", inside.latency, inside.bandwidth}, {"between", between.latency, between.bandwidth}};
  for (int host = 0; host < hosts; ++host) {
    cluster.hosts.push_back({.name = std::string("host-") + std::to_string(host), .workers = workers});
  }
  return cluster;
}

Simulation run(const Cluster& cluster, const ScheduleOptions& options, int64_t microbatches, const CostModel& costs,
               int64_t checkpoint_every = 0) {
  const Schedule schedule = make_schedule(options);
  const WorkerPlaces places(cluster, schedule.workers);
  return simulate(
      schedule, costs,
      {.microbatches = microbatches, .places = &places, .links = true, .checkpoint_every = checkpoint_every});
}

CostModel costs_with_sizes() {
  CostModel costs = uniform_costs(2);
  costs.stages[0].update = 0.5;
  costs.stages[0].output_bytes = 100;
  costs.stages[0].gradient_bytes = 300;
  costs.stages[0].weight_bytes = 150;
  costs.stages[0].optimizer_bytes = 600;
  return costs;
}

TEST(SimulateCluster, EqualLinksAreThoseOfTheCostModel) {
  const LinkCost link{0.01, 1000};
  CostModel uniform = costs_with_sizes();
  uniform.link = link;
  const Cluster cluster = cluster_of(3, 4, link, link);
  for (const ScheduleKind& kind : schedule_kinds().all()) {
    for (const int replicas : {1, 3}) {
      const ScheduleOptions options{.name = kind.name, .stages = 4, .window = 4, .replicas = replicas};
      const Schedule schedule = make_schedule(options);
      const double expected = simulate(schedule, uniform, {.microbatches = 24 * replicas}).makespan;
      EXPECT_NEAR(run(cluster, options, 24 * replicas, costs_with_sizes()).makespan, expected, 1e-9 * expected)
          << kind.name << ", replicas " << replicas;
    }
  }
}

TEST(SimulateCluster, EachMessagePaysForTheLinkItTakes) {
  // Workers 0 and 1 share a host, 2 has its own: a forward crosses one link of each class, and so does its gradient.
  const Cluster cluster = cluster_of(2, 2, {0.25, 1000}, {3, 50});
  const Simulation s = run(cluster, {"gpipe", 3, 1}, 1, costs_with_sizes());
  EXPECT_DOUBLE_EQ(s.makespan, 3 * 3 + 2 * (0.25 + 0.1) + 2 * (3 + 2) + 0.5);
}

TEST(SimulateCluster, SpeedsScaleWhatWorkersDo) {
  Cluster cluster = cluster_of(2, 2, {0, 1e18}, {0, 1e18});
  const auto makespan = [&] { return run(cluster, {"1f1b", 4, 8}, 16, uniform_costs(2)).makespan; };
  const double before = makespan();
  for (Host& host : cluster.hosts) host.speed = 4;
  EXPECT_NEAR(makespan(), before / 4, 1e-9);
  // The slow host decides: its stages take 6 each.
  cluster.hosts[0].speed = 1;
  cluster.hosts[1].speed = 0.5;
  const Simulation slow = run(cluster, {"pipedream", 4, 1}, 200, uniform_costs(2));
  EXPECT_NEAR(slow.makespan / 200, 6, 0.1);
  EXPECT_DOUBLE_EQ(slow.busy[2], 2 * slow.busy[0]);
}

TEST(SimulateCluster, TheWorstHopHoldsUpAWholeReductionOnce) {
  // Gradients of 1 GB take 0.1 within a host and 1 between hosts; through a chain of parts only the slow hop counts.
  CostModel costs = uniform_costs(2);
  costs.stages[0].gradient_bytes = 1'000'000'000;
  const Cluster cluster = cluster_of(2, 4, {0, 1e10}, {0, 1e9});
  ScheduleOptions options{"gpipe", 1, 2, 2};
  options.shard_optimizer = false;
  const double one = run(cluster, options, 4, costs).makespan;  // on one host
  options.replicas = 8;
  const double all = run(cluster, options, 16, costs).makespan;  // on both
  EXPECT_NEAR(one, 6 + 0.1, 1e-9);
  EXPECT_GT(all, 6 + 1);
  EXPECT_LT(all, 6 + 1.05);
}

TEST(SimulateCluster, WorkersOfAHostShareItsPort) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].gradient_bytes = 1000;
  Cluster cluster = cluster_of(2, 4, {0, 1e18}, {0, 1000});
  // Four stages on each host, whose gradients all go from the second host to the first, and a shard of each back.
  const auto makespan = [&] { return run(cluster, {"gpipe", 4, 4, 2}, 8, costs).makespan; };
  const double alone = makespan();
  cluster.links[1].shared = true;
  EXPECT_NEAR(makespan(), alone + 3 + 1.5, 1e-6)
      << "a quarter of the bandwidth, for a gradient and for half of their sum";
  // One pipeline over both hosts: a single worker sends across, and gets the whole bandwidth.
  costs.stages[0].output_bytes = 100;
  const auto pipeline = [&] { return run(cluster, {"gpipe", 8, 4}, 8, costs).makespan; };
  const double shared = pipeline();
  cluster.links[1].shared = false;
  EXPECT_DOUBLE_EQ(pipeline(), shared);
}

TEST(SimulateCluster, MessagesToSeveralHostsGoThroughAPortOneByOne) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].weight_bytes = 1000;
  Cluster cluster = cluster_of(3, 1, {0, 1e18}, {0, 1000});
  ScheduleOptions options{"gpipe", 1, 2, 3};
  options.shard_optimizer = false;
  // Each of two windows takes 6, and sending the new weights takes 1 to each of two hosts.
  EXPECT_NEAR(run(cluster, options, 12, costs).makespan, 2 * (6 + 1), 1e-9);
  cluster.links[1].shared = true;
  EXPECT_NEAR(run(cluster, options, 12, costs).makespan, 2 * (6 + 2), 1e-9);
}

// 100 microbatches of the largest size accepted are more bytes than fit in 64 bits.
TEST(SimulateCluster, LinksCarryMoreThanAnyMemoryHolds) {
  CostModel costs = uniform_costs(2);
  costs.stages[0].output_bytes = 100'000'000'000'000'000;
  const Cluster cluster = cluster_of(2, 1, {0, 1e18}, {0, 1e18});
  const ScheduleOptions options{"pipedream", 2, 1};
  const WorkerPlaces places(cluster, 2);
  for (const int64_t checkpoint_every : {0, 30}) {
    const Simulation s = run(cluster, options, 100, costs, checkpoint_every);
    const auto classes = use_by_class(s, places);
    ASSERT_EQ(classes.size(), 1u);
    EXPECT_DOUBLE_EQ(classes[0].bytes_per_microbatch, 1e17);
    EXPECT_DOUBLE_EQ(classes[0].update_bytes_per_microbatch, 0);
    EXPECT_DOUBLE_EQ(classes[0].busy_share, 100 * 0.1 / s.makespan);
  }
}

TEST(SimulateCluster, LinksCarryWhatMicrobatchesAndUpdatesSend) {
  const Cluster cluster = cluster_of(4, 2, {1e-6, 1e6}, {1e-3, 1e5});
  const Simulation s = run(cluster, {"1f1b", 4, 6, 2}, 24, costs_with_sizes());
  double activations = 0, gradients = 0, reductions = 0, sums = 0, versions = 0;
  for (const LinkUse& use : s.links) {
    activations += use.of(MessageKind::Activation);
    gradients += use.of(MessageKind::Gradient);
    reductions += use.of(MessageKind::Reduction);
    sums += use.of(MessageKind::Sum);
    versions += use.of(MessageKind::Version);
  }
  EXPECT_EQ(activations, 24 * 3 * 100);
  EXPECT_EQ(gradients, 24 * 3 * 100);
  EXPECT_EQ(reductions, 2 * 4 * 300) << "two updates of four stages";
  EXPECT_EQ(sums, 2 * 4 * 300 / 2) << "the second replica's shard";
  EXPECT_EQ(versions, 2 * 4 * 2 * 150 / 2) << "each gets the other's shard";
  const Schedule schedule = make_schedule({"1f1b", 4, 6, 2});
  const WorkerPlaces places(cluster, schedule.workers);
  const auto classes = use_by_class(s, places);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].name, "inside");
  EXPECT_EQ(classes[1].name, "between");
  EXPECT_EQ(classes[0].links, 2 * 4) << "two pairs of each pipeline";
  EXPECT_EQ(classes[1].links, 2 * 2 + 4 * 2) << "the middle of each pipeline, and the stages' replicas";
  for (const ClassUse& use : classes) {
    EXPECT_GT(use.busy_share, 0);
    EXPECT_LT(use.busy_share, 1);
  }
}

// docs/processes.md has these figures for bf16: 4 bytes of gradient and 2 of weights for each parameter.
TEST(SimulateCluster, WhatACopySendsForAnUpdate) {
  constexpr int64_t kParameters = 1000;
  CostModel costs = uniform_costs(2);
  costs.stages[0].gradient_bytes = 4 * kParameters;
  costs.stages[0].weight_bytes = 2 * kParameters;
  // Bytes for each parameter that each replica sends in one update.
  const auto sent = [&](int replicas, bool shards) {
    ScheduleOptions options{"1f1b", 1, 2, replicas};
    options.shard_optimizer = shards;
    std::vector<double> bytes(static_cast<size_t>(replicas), 0);
    for (const LinkUse& use : run(cluster_of(replicas, 1, {0, 1e9}, {0, 1e9}), options, 2 * replicas, costs).links) {
      bytes[static_cast<size_t>(use.from)] += static_cast<double>(use.total()) / kParameters;
    }
    return bytes;
  };
  EXPECT_THAT(sent(4, true), ::testing::ElementsAre(4.5, 5.5, 5.5, 5.5)) << "the first adds last, and keeps its shard";
  EXPECT_THAT(sent(8, true), ::testing::ElementsAre(5.25, 5.75, 5.75, 5.75, 5.75, 5.75, 5.75, 5.75));
  EXPECT_THAT(sent(4, false), ::testing::ElementsAre(6, 4, 4, 4));
}

TEST(SimulateCluster, CheckpointsDrainAndCopy) {
  Cluster cluster = cluster_of(2, 2, {1e-6, 1e6}, {1e-3, 1e5});
  cluster.settings.snapshot_bandwidth = 100;  // copying the optimizer's 600 bytes takes 6
  const ScheduleOptions options{"pipedream", 4, 1};
  const double ten = run(cluster, options, 10, costs_with_sizes()).makespan;
  const double five = run(cluster, options, 5, costs_with_sizes()).makespan;
  const Simulation s = run(cluster, options, 25, costs_with_sizes(), 10);
  EXPECT_EQ(s.checkpoints, 2);
  EXPECT_DOUBLE_EQ(s.checkpoint_stall, 6);
  EXPECT_DOUBLE_EQ(s.makespan, 2 * (ten + 6) + five);
  EXPECT_EQ(s.links.size(), 6u) << "each link once";
  CostModel measured = costs_with_sizes();
  measured.checkpoint = 1.5;
  EXPECT_DOUBLE_EQ(run(cluster, options, 25, measured, 10).makespan, 2 * (ten + 1.5) + five);
  EXPECT_DOUBLE_EQ(run(cluster, options, 5, measured, 10).makespan, five) << "none comes";
  EXPECT_EQ(parse_costs(to_json(measured), "written"), measured);
}

}  // namespace
}  // namespace gyre
