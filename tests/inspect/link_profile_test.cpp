// Links measured between ranks that are threads of one process, connected as processes are.
#include "gyre/inspect/link_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "gyre/core/error.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using testing_support::TemporaryDirectory;

struct Outcome {
  std::optional<Cluster> cluster;
  std::string error;
};

// [rank]: the outcome for ranks on those hosts.
std::vector<Outcome> profile(const std::vector<std::string>& hosts) {
  const TemporaryDirectory place;
  const int world = static_cast<int>(hosts.size());
  std::vector<Outcome> outcomes(hosts.size());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      const auto number = static_cast<size_t>(rank);
      try {
        Ranks ranks(rank, world, "job", make_rendezvous({.directory = place.path().string(), .world = world}));
        LinkProfileOptions options{.host = hosts[number], .memory = 8e9, .pings = 20, .streams = 1};
        options.stream_bytes = int64_t{8} << 20;
        outcomes[number].cluster = profile_links(ranks, options);
      } catch (const std::exception& error) {
        outcomes[number].error = error.what();
      }
    });
  }
  threads.clear();
  return outcomes;
}

TEST(LinkProfile, HasAClassForEachKindOfNeighbours) {
  const auto outcomes = profile({"a", "a", "b"});
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, "");
  ASSERT_TRUE(outcomes[0].cluster);
  EXPECT_FALSE(outcomes[1].cluster);
  const Cluster& cluster = *outcomes[0].cluster;
  ASSERT_EQ(cluster.hosts.size(), 2u);
  EXPECT_EQ(cluster.hosts[0].name, "a");
  EXPECT_EQ(cluster.hosts[0].workers, 2);
  EXPECT_EQ(cluster.hosts[0].memory_bytes() >> 20, static_cast<int64_t>(4e9) >> 20) << "half of the host's for each";
  EXPECT_EQ(cluster.hosts[1].workers, 1);
  ASSERT_EQ(cluster.links.size(), 2u);
  for (const LinkClass& link : cluster.links) {
    EXPECT_GT(link.latency, 1e-7);
    EXPECT_LT(link.latency, 1);
    EXPECT_GT(link.bandwidth, 1e6);
  }
  EXPECT_TRUE(cluster.links[1].shared) << "the port of a host";
  EXPECT_GT(cluster.settings.snapshot_bandwidth, 1e7);
  EXPECT_EQ(parse_cluster(to_toml(cluster), "written"), cluster);
}

TEST(LinkProfile, OneHostHasOneClass) {
  const auto outcomes = profile({"a", "a"});
  ASSERT_TRUE(outcomes[0].cluster) << outcomes[0].error;
  EXPECT_EQ(outcomes[0].cluster->links.size(), 1u);
  EXPECT_EQ(outcomes[0].cluster->settings.between_hosts, "");
}

TEST(LinkProfile, RanksAreNumberedHostByHost) {
  EXPECT_THAT(profile({"a", "b", "a"})[0].error,
              ::testing::HasSubstr("rank 2 is on a, and so are ranks before rank 1"));
}

}  // namespace
}  // namespace gyre
