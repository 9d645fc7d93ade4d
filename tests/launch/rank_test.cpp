// Every launcher's variables are understood; missing, malformed or contradictory ones are named; a process without a
// launcher is alone.
#include "gyre/launch/rank.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

using Environment = std::map<std::string, std::string>;

std::optional<Rank> find_in(const Environment& environment) {
  return find_rank([&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

Environment with(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}
Environment without(Environment environment, const std::vector<std::string>& names) {
  for (const std::string& name : names) environment.erase(name);
  return environment;
}

// The variables that a launcher sets, and the expected result.
struct Example {
  Environment environment;
  Rank rank;
  std::vector<std::string> numbers;   // variables that must be there and are whole numbers
  std::vector<std::string> texts;     // variables that must be there
  std::vector<std::string> optional;  // those of the numbers that may be missing
};

const Environment kByHand = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node1"},
                             {"MASTER_PORT", "4711"}};
const Environment kTorchrun = with(
    kByHand,
    {{"TORCHELASTIC_RUN_ID", "fish"}, {"TORCHELASTIC_RESTART_COUNT", "2"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"PMIX_NAMESPACE", "1234@1"},
                              {"MASTER_ADDR", "node1"},
                              {"MASTER_PORT", "4711"}};
const Environment kHydra = {{"PMI_RANK", "3"},        {"PMI_SIZE", "4"},        {"MPI_LOCALRANKID", "1"},
                            {"MPI_LOCALNRANKS", "2"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "4711"}};
const Environment kSlurmBatch = {{"SLURM_JOB_ID", "77"},
                                 {"SLURM_JOB_NODELIST", "node[07-09]"},
                                 {"SLURM_NTASKS", "6"},
                                 {"SLURM_PROCID", "0"},
                                 {"SLURM_LOCALID", "0"},
                                 {"SLURM_NODEID", "0"},
                                 {"SLURM_TASKS_PER_NODE", "2(x3)"}};
const Environment kSlurm = with(kSlurmBatch, {{"SLURM_STEP_ID", "5"},
                                              {"SLURM_STEP_NODELIST", "node[07,09]"},
                                              {"SLURM_STEP_NUM_TASKS", "4"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                              {"SLURM_NTASKS", "4"},
                                              {"SLURM_PROCID", "3"},
                                              {"SLURM_LOCALID", "1"},
                                              {"SLURM_NODEID", "1"},
                                              {"SLURM_RESTART_COUNT", "2"},
                                              {"MASTER_PORT", "4711"}});
const Environment kOwn = {
    {"GYRE_RANK", "3"},       {"GYRE_WORLD_SIZE", "4"}, {"GYRE_LOCAL_RANK", "3"}, {"GYRE_LOCAL_WORLD_SIZE", "4"},
    {"GYRE_STORE", "/store"}, {"GYRE_JOB", "9c3f"},     {"GYRE_RESTART", "2"},    {"GYRE_BEGUN", "1"}};

std::vector<Example> examples() {
  return {
      {kOwn,
       {3, 4, 3, 4, "gyre launch", "/store", "", 0, false, "9c3f", 2, false, true},
       {"GYRE_RANK", "GYRE_WORLD_SIZE", "GYRE_LOCAL_RANK", "GYRE_LOCAL_WORLD_SIZE", "GYRE_RESTART", "GYRE_BEGUN"},
       {"GYRE_STORE", "GYRE_JOB"},
       {"GYRE_BEGUN"}},
      {kTorchrun,
       {3, 4, 1, 2, "torchrun", "", "node1", 4711, true, "fish", 2},
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"},
       {"MASTER_ADDR", "TORCHELASTIC_RUN_ID"},
       {}},
      {kByHand,
       {3, 4, 1, 2, "RANK and WORLD_SIZE", "", "node1", 4711, false, "", 0, true},
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"},
       {"MASTER_ADDR"},
       {"MASTER_PORT"}},
      {kOpenMpi,
       {3, 4, 1, 2, "mpirun", "", "node1", 4711, false, "1234@1", 0},
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MASTER_PORT"},
       {"MASTER_ADDR"},
       {"MASTER_PORT"}},
      {kHydra,
       {3, 4, 1, 2, "mpiexec", "", "node1", 4711, false, "", 0},
       {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MASTER_PORT"},
       {"MASTER_ADDR"},
       {"MASTER_PORT"}},
      {kSlurm,
       {3, 4, 1, 2, "srun", "", "node07", 4711, false, "77.5", 2},
       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_RESTART_COUNT", "MASTER_PORT"},
       {"SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID", "SLURM_STEP_ID"},
       {"MASTER_PORT", "SLURM_RESTART_COUNT"}},
  };
}

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::ranges::find(names, name) != names.end();
}

TEST(FindRank, NoLauncherIsOneProcess) {
  EXPECT_EQ(find_in({}), std::nullopt);
  EXPECT_EQ(find_in({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "4711"}, {"OMP_NUM_THREADS", "1"}}), std::nullopt);
}

TEST(FindRank, EachLauncherIsUnderstood) {
  for (const Example& example : examples()) {
    const auto rank = find_in(example.environment);
    ASSERT_TRUE(rank) << example.rank.launcher;
    EXPECT_EQ(*rank, example.rank) << example.rank.launcher << " gives " << rank->launcher << " " << rank->rank << " "
                                   << rank->master_address;
  }
}

TEST(FindRank, TorchrunsDefaultIsNoJob) {
  EXPECT_EQ(find_in(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}}))->job, "");
}

TEST(FindRank, WhatIsMissingIsNamed) {
  for (const Example& example : examples()) {
    std::vector<std::string> all = example.numbers;
    all.insert(all.end(), example.texts.begin(), example.texts.end());
    for (const std::string& name : all) {
      if (is_one_of(name, example.optional)) {
        EXPECT_TRUE(find_in(without(example.environment, {name}))) << name;
        continue;
      }
      EXPECT_THAT([&] { find_in(without(example.environment, {name})); },
                  ThrowsMessage<InputError>(StartsWith(name + " is not set")))
          << name << " of " << example.rank.launcher;
      EXPECT_THAT(
          [&] {
            find_in(with(example.environment, {{name, ""}}));
          },
          ThrowsMessage<InputError>(StartsWith(name + " is empty")))
          << name << " of " << example.rank.launcher;
    }
  }
}

TEST(FindRank, AllThatIsMissingIsNamedAtOnce) {
  EXPECT_THAT(
      [&] {
        find_in({{"RANK", "1"}});
      },
      ThrowsMessage<InputError>(StartsWith("WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE are not set, but RANK is")));
  EXPECT_THAT(
      [&] {
        find_in(without(kTorchrun, {"MASTER_ADDR", "MASTER_PORT"}));
      },
      ThrowsMessage<InputError>(StartsWith("MASTER_ADDR, MASTER_PORT are not set")));
}

TEST(FindRank, WhatIsNoNumberInRangeIsNamed) {
  for (const Example& example : examples()) {
    for (const std::string& name : example.numbers) {
      for (const char* value : {"x", "1x", " 1", "+1", "0x1", "1.0"}) {
        EXPECT_THAT(
            [&] {
              find_in(with(example.environment, {{name, value}}));
            },
            ThrowsMessage<InputError>(StartsWith(fmt::format("{} is '{}', which is not a whole number", name, value))));
      }
      for (const char* value : {"-1", "2147483648", "99999999999999999999"}) {
        EXPECT_THAT(
            [&] {
              find_in(with(example.environment, {{name, value}}));
            },
            ThrowsMessage<InputError>(StartsWith(fmt::format("{} is {}; it can be ", name, value))));
      }
    }
  }
}

// Every pair of counts up to some size: accepted if they fit, otherwise both variables are named.
TEST(FindRank, CountsThatContradictAreNamed) {
  for (int rank = 0; rank < 4; ++rank) {
    for (int world = 1; world < 4; ++world) {
      for (int local_rank = 0; local_rank < 4; ++local_rank) {
        for (int local_world = 1; local_world < 4; ++local_world) {
          const Environment environment = with(kTorchrun, {{"RANK", std::to_string(rank)},
                                                           {"WORLD_SIZE", std::to_string(world)},
                                                           {"LOCAL_RANK", std::to_string(local_rank)},
                                                           {"LOCAL_WORLD_SIZE", std::to_string(local_world)}});
          if (rank < world && local_rank < local_world && local_world <= world) {
            EXPECT_TRUE(find_in(environment));
            continue;
          }
          const bool of_all = rank >= world;
          const bool of_host = local_rank >= local_world;
          const std::string name = of_all ? "RANK" : of_host ? "LOCAL_RANK" : "LOCAL_WORLD_SIZE";
          const std::string other = of_all || !of_host ? "WORLD_SIZE" : "LOCAL_WORLD_SIZE";
          EXPECT_THAT([&] { find_in(environment); },
                      ThrowsMessage<InputError>(AllOf(StartsWith(name + " is "), HasSubstr("but " + other + " is "))));
        }
      }
    }
  }
}

TEST(FindRank, TheNearestLauncherDecides) {
  const auto launcher = [](const Environment& environment) { return find_in(environment)->launcher; };
  const Environment one_of_two = with(kSlurm, {{"SLURM_PROCID", "1"},
                                               {"SLURM_STEP_NUM_TASKS", "2"},
                                               {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                               {"SLURM_LOCALID", "0"}});
  EXPECT_EQ(launcher(with(one_of_two, kTorchrun)), "torchrun");
  EXPECT_EQ(launcher(with(one_of_two, kOpenMpi)), "mpirun");
  EXPECT_EQ(launcher(with(one_of_two, kHydra)), "mpiexec");
  EXPECT_EQ(launcher(with(with(one_of_two, kTorchrun), kOwn)), "gyre launch");
  EXPECT_EQ(launcher(with(kOpenMpi, kTorchrun)), "torchrun");
}

TEST(FindRank, WhatIsSetByHandMustAgreeWithALauncher) {
  EXPECT_EQ(find_in(with(kSlurm, kByHand))->launcher, "RANK and WORLD_SIZE");
  EXPECT_FALSE(find_in(with(kSlurm, kByHand))->by_hand) << "srun is there to end the ranks";
  EXPECT_EQ(find_in(with(kOpenMpi, kByHand))->rank, 3);
  for (const Environment& launched : {kSlurm, kOpenMpi, kHydra}) {
    EXPECT_THAT(
        [&] {
          find_in(with(with(launched, kByHand), {{"RANK", "2"}}));
        },
        ThrowsMessage<InputError>(HasSubstr("says that this is rank 3 of 4; unset RANK and WORLD_SIZE")));
    EXPECT_THROW(find_in(with(with(launched, kByHand), {{"WORLD_SIZE", "5"}})), InputError);
  }
  // A shell that srun has started may start ranks itself.
  const Environment shell = with(kSlurm, {{"SLURM_PROCID", "0"},
                                          {"SLURM_STEP_NUM_TASKS", "1"},
                                          {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                          {"SLURM_LOCALID", "0"},
                                          {"SLURM_NODEID", "0"}});
  EXPECT_EQ(find_in(shell)->world, 1);
  EXPECT_EQ(find_in(with(shell, kByHand))->world, 4);
}

TEST(FindRank, ABatchScriptOrShellOfSlurmIsOneProcess) {
  EXPECT_EQ(find_in(kSlurmBatch), std::nullopt);
  EXPECT_EQ(find_in(without(kSlurmBatch, {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"})), std::nullopt);  // salloc
  EXPECT_EQ(find_in(with(kSlurm, {{"SLURM_STEP_ID", "4294967290"}})), std::nullopt);
}

// On clusters where PMI is the default, srun sets two of its variables.
TEST(FindRank, SrunWithPmiIsSrun) {
  EXPECT_EQ(find_in(with(kSlurm, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}))->launcher, "srun");
}

TEST(FindRank, WhereRankZeroIs) {
  const auto address = [](const Environment& environment) { return find_in(environment)->master_address; };
  const Environment anywhere = without(kSlurm, {"MASTER_PORT"});
  EXPECT_EQ(find_in(anywhere)->master_port, 29500);
  EXPECT_EQ(address(with(anywhere, {{"MASTER_ADDR", "10.0.0.1"}})), "10.0.0.1");
  for (const auto& [hosts, first] : Environment{{"one", "one"},
                                                {"a1,a2", "a1"},
                                                {"node-[7]", "node-7"},
                                                {"node[001-100]", "node001"},
                                                {"n[5,7-9],m", "n5"},
                                                {"n[5-9]-ib,m", "n5-ib"},
                                                {"rack[2-3]node[04,05],m", "rack2node04"}}) {
    EXPECT_EQ(address(with(anywhere, {{"SLURM_STEP_NODELIST", hosts}})), first) << hosts;
  }
  // Ranks on one host need no address.
  const Rank by_hand =
      find_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}).value();
  EXPECT_EQ(by_hand.master_address, "127.0.0.1");
  EXPECT_EQ(by_hand.master_port, 29500);
  for (const Environment& launched : {kOpenMpi, kHydra}) {
    const std::string world = launched.contains("PMI_SIZE") ? "MPI_LOCALNRANKS" : "OMPI_COMM_WORLD_LOCAL_SIZE";
    EXPECT_EQ(address(without(with(launched, {{world, "4"}}), {"MASTER_ADDR"})), "127.0.0.1");
  }
}

TEST(FindRank, TasksOfAHostInSlurmsShortForm) {
  const auto local_world = [](const std::string& tasks, int host) {
    return find_in(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "100"},
                                 {"SLURM_STEP_TASKS_PER_NODE", tasks},
                                 {"SLURM_NODEID", std::to_string(host)}}))
        ->local_world;
  };
  EXPECT_EQ(local_world("2", 0), 2);
  EXPECT_EQ(local_world("2,3", 1), 3);
  EXPECT_EQ(local_world("4(x2),3,5(x2)", 1), 4);
  EXPECT_EQ(local_world("4(x2),3,5(x2)", 2), 3);
  EXPECT_EQ(local_world("4(x2),3,5(x2)", 4), 5);
  for (const char* tasks : {"", ",", "x", "2(", "2(x", "2(x)", "2(x0)", "0", "-1", "2(x2", "99999999999", "2(x3)3"}) {
    EXPECT_THAT([&] { local_world(tasks, 2); }, ThrowsMessage<InputError>(StartsWith("SLURM_STEP_TASKS_PER_NODE")))
        << tasks;
  }
  EXPECT_THAT([&] { local_world("4(x2)", 2); }, ThrowsMessage<InputError>(HasSubstr("SLURM_NODEID, which is 2")));
}

}  // namespace
}  // namespace gyre
