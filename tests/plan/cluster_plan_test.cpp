// Tests plans for a cluster, with made-up profiles and links for which the answer is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "gyre/core/cores.h"
#include "gyre/core/error.h"
#include "gyre/plan/planner.h"
#include "gyre/plan/shapes.h"

namespace gyre {
namespace {

std::vector<LayerProfile> blocks(int layers) {
  LayerProfile layer;
  layer.forward = 0.01;
  layer.backward_input = layer.backward_weights = 0.01;
  layer.update = 0.001;
  layer.input_bytes = layer.output_bytes = 1'000'000;
  layer.activation_bytes = 4'000'000;
  layer.weight_bytes = 1'000'000;
  layer.gradient_bytes = 2'000'000;
  layer.optimizer_bytes = 6'000'000;
  return std::vector<LayerProfile>(static_cast<size_t>(layers), layer);
}

Cluster two_hosts(double network_bandwidth) {
  Cluster cluster;
  cluster.settings.within_host = "host";
  cluster.settings.between_hosts = "network";
  cluster.links = {{"host", 1e-6, 1e11}, {"network", 1e-5, network_bandwidth}};
  cluster.hosts = {{.name = "a", .workers = 4}, {.name = "b", .workers = 4}};
  return cluster;
}

PlanOptions on(const Cluster& cluster) {
  PlanOptions options;
  options.cluster = &cluster;
  options.window = 8;
  options.tokens_per_microbatch = 100;
  options.detailed_rows = 1000;
  return options;
}

const PlanRow* find(const Plan& plan, const std::string& schedule, int stages, int replicas, bool by_stages,
                    int hosts) {
  const auto found = std::ranges::find_if(plan.rows, [&](const PlanRow& row) {
    return row.schedule.name == schedule && row.schedule.stages == stages && row.schedule.replicas == replicas &&
           row.schedule.by_stages == by_stages && row.hosts == hosts;
  });
  return found == plan.rows.end() ? nullptr : &*found;
}

TEST(ClusterPlan, TriesEveryWayToShareTheWorkersOut) {
  const Cluster cluster = two_hosts(1e10);
  const auto shapes = shapes_on(cluster, 8);
  const auto has = [&](size_t hosts, int workers, int replicas, bool by_stages) {
    return std::ranges::any_of(shapes, [&](const Shape& shape) {
      return shape.hosts == hosts && shape.workers == workers && shape.replicas == replicas &&
             shape.by_stages == by_stages;
    });
  };
  EXPECT_TRUE(has(1, 4, 1, false));
  EXPECT_TRUE(has(1, 2, 2, false));
  EXPECT_FALSE(has(1, 2, 2, true)) << "on one host all links are alike";
  EXPECT_TRUE(has(2, 8, 1, false));
  for (const bool by_stages : {false, true}) EXPECT_TRUE(has(2, 4, 2, by_stages) && has(2, 2, 4, by_stages));
  EXPECT_TRUE(has(2, 1, 8, false));
  EXPECT_FALSE(has(2, 1, 8, true)) << "there is one stage";
  EXPECT_FALSE(has(2, 5, 1, false)) << "three workers would be idle";
  for (const Shape& shape : shapes_on(cluster, 3)) EXPECT_LE(shape.workers, 3) << "a stage has a layer at least";
  Cluster pairs = cluster;
  pairs.settings.workers_per_process = 2;
  for (const Shape& shape : shapes_on(pairs, 8)) EXPECT_EQ(shape.workers * shape.replicas % 2, 0);
}

// Where the widest replicas would leave a process with idle workers, the widest that do not take their place.
TEST(ClusterPlan, EveryNumberOfReplicasHasItsWidestShapeThatFillsProcesses) {
  for (int64_t together = 1; together <= 5; ++together) {
    for (int64_t processes = 1; processes <= 6; ++processes) {
      Cluster cluster = two_hosts(1e10);
      cluster.settings.workers_per_process = together;
      cluster.hosts[0].workers = cluster.hosts[1].workers = together * processes;
      for (int layers = 1; layers <= 24; ++layers) {
        std::map<std::pair<size_t, int>, int> expected, found;  // hosts and replicas -> workers of a replica
        for (const int hosts : {1, 2}) {
          const int total = static_cast<int>(hosts * together * processes);
          for (int workers = 1; workers <= std::min(total, layers); ++workers) {
            const int replicas = total / workers, used = workers * replicas;
            const bool fits_on_fewer = hosts == 2 && used <= total / 2;
            if (used % together == 0 && !fits_on_fewer) expected[{hosts, replicas}] = workers;
          }
        }
        for (const Shape& shape : shapes_on(cluster, layers)) found[{shape.hosts, shape.replicas}] = shape.workers;
        EXPECT_EQ(found, expected) << layers << " layers, " << processes << " processes of " << together;
      }
    }
  }
}

TEST(ClusterPlan, PutsNearEachOtherWhatTalksMost) {
  // With rare updates, activations are most of the traffic, so a pipeline should be inside a host.
  const Cluster slow = two_hosts(2e8);
  PlanOptions options = on(slow);
  options.window = 512;
  const Plan rare = make_plan(blocks(8), options);
  EXPECT_GT(find(rare, "1f1b", 4, 2, false, 2)->tokens_per_second,
            find(rare, "1f1b", 4, 2, true, 2)->tokens_per_second);
  // With small activations and an update for every microbatch, gradients are, so the replicas of a stage should be
  // together.
  auto layers = blocks(8);
  for (LayerProfile& layer : layers) {
    layer.input_bytes = layer.output_bytes = 1000;
    layer.gradient_bytes = 50'000'000;
    layer.weight_bytes = 25'000'000;
  }
  options.window = 2;
  const Plan often = make_plan(layers, options);
  EXPECT_LT(find(often, "1f1b", 4, 2, false, 2)->tokens_per_second,
            find(often, "1f1b", 4, 2, true, 2)->tokens_per_second);
}

TEST(ClusterPlan, SaysWhereTheTimeGoes) {
  const Cluster fast = two_hosts(1e15), slow = two_hosts(1e8);
  const Plan free = make_plan(blocks(8), on(fast)), dear = make_plan(blocks(8), on(slow));
  for (const Plan* plan : {&free, &dear}) {
    for (const PlanRow& row : plan->rows) {
      const Losses& lost = row.losses;
      for (const double share : {lost.bubble, lost.imbalance, lost.messages, lost.reductions}) {
        EXPECT_GE(share, 0);
        EXPECT_LT(share, 1);
      }
      const double of_one = 0.03 * 8 + 0.0;  // seconds of a microbatch on one worker, without updates
      const double useful = row.tokens_per_second / 100 * of_one / row.workers;
      EXPECT_LE(useful, 1.0 + 1e-9);
      // Updates count as work too; they take a hundredth of the time.
      EXPECT_NEAR(useful, 1 - lost.bubble - lost.imbalance - lost.messages - lost.reductions, 0.08)
          << row.schedule.name << ", " << row.schedule.stages << " x " << row.schedule.replicas;
    }
  }
  const PlanRow* flush = find(free, "1f1b", 8, 1, false, 2);
  EXPECT_NEAR(flush->losses.bubble, 7.0 / 15, 0.05);
  EXPECT_LT(flush->losses.messages, 0.01);
  EXPECT_GT(find(dear, "1f1b", 8, 1, false, 2)->losses.messages, 0.05);
  EXPECT_GT(find(dear, "1f1b", 4, 2, false, 2)->losses.reductions, 0.05);
  EXPECT_GT(find(make_plan(blocks(9), on(fast)), "1f1b", 8, 1, false, 2)->losses.imbalance, 0.1);
}

// Schedules are simulated on all cores.
TEST(ClusterPlan, IsTheSameOnOneCore) {
  const Cluster cluster = two_hosts(1e9);
  size_t calls = 0, last = 0;
  PlanOptions options = on(cluster);
  options.progress = [&](size_t simulated, size_t all) {
    EXPECT_EQ(simulated, ++calls);
    last = all;
  };
  const Plan plan = make_plan(blocks(4), options);
  EXPECT_EQ(calls, last);
  Plan on_one;
  std::jthread([&] {
    stay_on({usable_cores().at(0)});
    on_one = make_plan(blocks(4), on(cluster));
  }).join();
  ASSERT_EQ(on_one.rows.size(), plan.rows.size());
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const PlanRow &a = plan.rows[i], &b = on_one.rows[i];
    EXPECT_EQ(std::tie(a.schedule.name, a.schedule.stages, a.schedule.replicas, a.tokens_per_second, a.peak_memory),
              std::tie(b.schedule.name, b.schedule.stages, b.schedule.replicas, b.tokens_per_second, b.peak_memory));
    EXPECT_EQ(a.links.size(), b.links.size());
  }
  EXPECT_EQ(on_one.left_out, plan.left_out);
}

TEST(ClusterPlan, ABadNetworkIsLeftAlone) {
  const Cluster cluster = two_hosts(1e5);
  EXPECT_EQ(make_plan(blocks(8), on(cluster)).rows.front().hosts, 1);
  const Cluster fast = two_hosts(1e12);
  EXPECT_EQ(make_plan(blocks(8), on(fast)).rows.front().hosts, 2);
}

TEST(ClusterPlan, KeepsAnUpdatesTokensWhereItCan) {
  const Cluster cluster = two_hosts(1e10);
  PlanOptions options = on(cluster);
  options.replicas = 2;  // of 8 microbatches each
  for (const PlanRow& row : make_plan(blocks(8), options).rows) {
    if (row.schedule.name != "1f1b" && row.schedule.name != "pipedream") continue;
    EXPECT_EQ(row.schedule.window * row.schedule.replicas, 16) << row.schedule.replicas;
  }
}

TEST(ClusterPlan, RespectsTheMemoryOfEachHost) {
  Cluster cluster = two_hosts(1e10);
  const Plan all = make_plan(blocks(8), on(cluster));
  cluster.hosts[1].memory = "30MiB";  // fits half of the layers, and no more
  const Plan some = make_plan(blocks(8), on(cluster));
  EXPECT_LT(some.rows.size(), all.rows.size());
  EXPECT_EQ(find(some, "gpipe", 1, 8, false, 2), nullptr) << "the whole model on a worker of the second host";
  for (Host& host : cluster.hosts) host.memory = "1KiB";
  try {
    make_plan(blocks(8), on(cluster));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("no schedule fits in the memory of the cluster's workers; the least"));
  }
}

TEST(ClusterPlan, CheckpointsCost) {
  Cluster cluster = two_hosts(1e10);
  cluster.settings.snapshot_bandwidth = 1e6;
  PlanOptions options = on(cluster);
  const Plan without = make_plan(blocks(8), options);
  options.checkpoint_seconds = 60;
  const Plan with = make_plan(blocks(8), options);
  const PlanRow* before = find(without, "pipedream", 8, 1, false, 2);
  const PlanRow* after = find(with, "pipedream", 8, 1, false, 2);
  EXPECT_EQ(before->checkpoint_share, 0);
  EXPECT_GT(after->checkpoint_share, 6.0 / 66.5) << "6 s to copy, and a fill";
  EXPECT_LT(after->checkpoint_share, 6.0 / 60);
  EXPECT_NEAR(after->tokens_per_second, before->tokens_per_second * (1 - after->checkpoint_share), 1e-6);
}

}  // namespace
}  // namespace gyre
