// cluster.toml: reading and writing give the same, faults are reported with their line, and the places of workers.
#include "gyre/cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/cluster/worker_places.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "support/source_directory.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwoHosts = R"([cluster]
within_host = "loopback"
between_hosts = "ethernet"

[links.loopback]
latency = 2e-5
bandwidth = 2e9

[links.ethernet]
latency = 5e-5
bandwidth = 1.25e9
shared = true

[[hosts]]
name = "a"
workers = 2
speed = 2
memory = "8GiB"

[[hosts]]
name = "b"
workers = 4
)";

std::string fault_of(const std::string& toml) {
  try {
    parse_cluster(toml, "cluster.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// kTwoHosts with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kTwoHosts;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Cluster, ComesBackTheSame) {
  Cluster cluster = parse_cluster(kTwoHosts, "cluster.toml");
  EXPECT_EQ(cluster.workers(), 6);
  EXPECT_EQ(cluster.hosts[0].memory_bytes(), int64_t{8} << 30);
  EXPECT_EQ(cluster.hosts[1].memory_bytes(), 0);
  EXPECT_EQ(cluster.links[0].name, "loopback") << "in the order of the file";
  EXPECT_EQ(parse_cluster(to_toml(cluster), "written"), cluster);
  cluster.links.push_back({"rack_1-A", 0, 1.5e9, false});
  cluster.groups.push_back({"rack_1-A", {"b", "a"}});
  cluster.settings.workers_per_process = 2;
  EXPECT_EQ(parse_cluster(to_toml(cluster), "written"), cluster);
}

TEST(Cluster, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(fault_of(kTwoHosts), "");
  EXPECT_THAT(fault_of("[links.a]\nlatency = 0\nbandwidth = 1\n"), HasSubstr("cluster.toml: has no host"));
  EXPECT_THAT(fault_of(changed("name = \"b\"", "name = \"a\"")),
              HasSubstr("cluster.toml:20: [[hosts]] name \"a\" is used twice"));
  EXPECT_THAT(fault_of(changed("name = \"b\"\n", "")), HasSubstr("[[hosts]] name is missing"));
  EXPECT_THAT(fault_of(changed("workers = 4", "workers = 0")),
              HasSubstr("cluster.toml:22: [hosts] workers is 0; give 1 to"));
  EXPECT_THAT(fault_of(changed("workers = 4\n", "")), HasSubstr("[[hosts]] workers is missing"));
  EXPECT_THAT(fault_of(changed("speed = 2", "speed = 0")), HasSubstr("speed is 0"));
  EXPECT_THAT(fault_of(changed("bandwidth = 2e9", "bandwidth = -2e9")),
              HasSubstr("cluster.toml:7: [links.loopback] bandwidth is -2"));
  EXPECT_THAT(fault_of(changed("latency = 2e-5", "latency = -1.0")),
              HasSubstr("cluster.toml:6: [links.loopback] latency is -1"));
  EXPECT_THAT(fault_of(changed("bandwidth = 2e9\n", "")), HasSubstr("[links.loopback] bandwidth is missing"));
  EXPECT_THAT(fault_of(changed("\"8GiB\"", "\"8 apples\"")), HasSubstr("memory is \"8 apples\", which is not a size"));
  EXPECT_THAT(
      fault_of(changed("= \"ethernet\"", "= \"ethernut\"")),
      HasSubstr("cluster.toml:3: [cluster] between_hosts is \"ethernut\", and no [links.ethernut] is there; did "
                "you mean 'ethernet'?"));
  EXPECT_THAT(fault_of(changed("between_hosts = \"ethernet\"\n", "")),
              HasSubstr("[cluster] between_hosts is missing, and there are 2 hosts"));
  EXPECT_THAT(fault_of(changed("within_host = \"loopback\"\n", "")), HasSubstr("[cluster] within_host is missing"));
  EXPECT_THAT(fault_of(changed("[cluster]", "[cluster]\nworkers_per_process = 4")),
              HasSubstr("host \"a\" has 2 workers, which is not a multiple"));
  EXPECT_THAT(fault_of(changed("[cluster]", "[clusters]")), HasSubstr("unknown table [clusters]"));
  EXPECT_THAT(fault_of("links = {\"a b\" = {bandwidth = 1}}\n"),
              HasSubstr("a class \"a b\"; give it a name of letters"));
  EXPECT_THAT(fault_of(changed("shared", "shard")), HasSubstr("unknown key 'shard' in [links.ethernet]"));
  const std::string group = std::string(kTwoHosts) + "[[groups]]\nlinks = \"rack\"\nhosts = [\"a\", \"c\"]\n";
  EXPECT_THAT(fault_of(group), HasSubstr("hosts has \"c\", and no host of that name is there"));
  EXPECT_THAT(fault_of(group), HasSubstr("links is \"rack\", and no [links.rack] is there")) << "all faults at once";
  EXPECT_THAT(fault_of("hosts = 1\nlinks = 2\ngroups = [3]\ncluster = 4\n"), HasSubstr("[cluster] must be a table"));
}

TEST(Cluster, WorkersStandOnHostsInOrder) {
  const Cluster cluster = parse_cluster(kTwoHosts, "cluster.toml");
  const WorkerPlaces places(cluster, 5);
  EXPECT_EQ(places.host_of(1), 0);
  EXPECT_EQ(places.host_of(2), 1);
  EXPECT_EQ(places.workers_on(1), 3);
  EXPECT_EQ(places.hosts(), 2);
  EXPECT_EQ(places.speed(0), 2);
  EXPECT_EQ(places.link(0, 1)->name, "loopback");
  EXPECT_EQ(places.link(1, 2)->name, "ethernet");
  EXPECT_EQ(WorkerPlaces(cluster, 2).hosts(), 1);
  EXPECT_THROW(WorkerPlaces(cluster, 7), InputError);
}

TEST(Cluster, ProcessesAndGroupsHaveLinksOfTheirOwn) {
  Cluster cluster;
  cluster.settings = {.workers_per_process = 2, .within_host = "host", .between_hosts = "far"};
  cluster.links = {{"host", 0, 1, false}, {"near", 0, 1, false}, {"far", 0, 1, false}};
  for (const char* name : {"a", "b", "c"}) cluster.hosts.push_back({name, 4});
  cluster.groups = {{"near", {"b", "c"}}};
  const WorkerPlaces places(cluster, 12);
  EXPECT_EQ(places.link(0, 1), nullptr) << "within a process messages change hands";
  EXPECT_EQ(places.link(1, 2)->name, "host");
  EXPECT_EQ(places.link(3, 4)->name, "far");
  EXPECT_EQ(places.link(11, 4)->name, "near");
  EXPECT_THROW(WorkerPlaces(cluster, 11), InputError) << "a process would be half full";
  EXPECT_EQ(first_hosts(cluster, 2).workers(), 8);
}

TEST(Cluster, DocsListEveryKey) {
  const std::string page = read_file(testing_support::source_directory() / "docs/simulation.md");
  EXPECT_THAT(page, HasSubstr(describe_cluster())) << "as describe_cluster() writes it";
}

}  // namespace
}  // namespace gyre
