// Which of the processes of a run this one is, as the launcher that started it says by environment variables.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace gyre {

// One process of a run. Ranks count from 0; rank 0 speaks for all.
struct Rank {
  int rank = 0, world = 1;              // of all processes of the run
  int local_rank = 0, local_world = 1;  // of those on this host
  std::string launcher;                 // for messages: "gyre launch", "torchrun", "mpirun", "mpiexec", "srun"
  // Where the ranks find each other: through files in this directory, which nobody else may enter, or, where it is
  // empty, at the address of rank 0.
  std::string store_directory;
  std::string master_address;
  int master_port = 0;
  bool agent_store = false;  // torchrun's agent serves that address: rank 0 is a client too
  // What only the processes of this run know, so that two runs at one address do not mix. Empty where the launcher has
  // no such thing.
  std::string job;
  int restart = 0;  // how often the launcher has started the run again

  bool operator==(const Rank&) const = default;
};

// The value of an environment variable, if it is set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
// Those of this process.
std::optional<std::string> environment_variable(const std::string& name);

// The nearest launcher decides: torchrun may have been started by srun. Nothing where none is seen, and in a Slurm
// batch script or shell, which srun has not started as one of several tasks: one process.
// Errors: InputError that names the variable which is missing, is no number, is out of range or contradicts another.
std::optional<Rank> find_rank(const Variables& variable = environment_variable);

// The names of the variables by which `gyre launch` tells a process its rank, in find_rank's terms.
inline constexpr const char* kRankVariable = "GYRE_RANK";
inline constexpr const char* kWorldVariable = "GYRE_WORLD_SIZE";
inline constexpr const char* kLocalRankVariable = "GYRE_LOCAL_RANK";
inline constexpr const char* kLocalWorldVariable = "GYRE_LOCAL_WORLD_SIZE";
inline constexpr const char* kStoreVariable = "GYRE_STORE";
inline constexpr const char* kJobVariable = "GYRE_JOB";
inline constexpr const char* kRestartVariable = "GYRE_RESTART";

}  // namespace gyre
