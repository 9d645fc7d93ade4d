// Finds out which process of a run this one is, from the environment variables of the launcher that started it.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace gyre {

// One process of a run. Ranks count from 0; rank 0 speaks for all.
struct Rank {
  int rank = 0, world = 1;              // among all processes of the run
  int local_rank = 0, local_world = 1;  // among those on this host
  std::string launcher;                 // for messages: "gyre launch", "torchrun", "mpirun", "mpiexec", "srun"
  // How the ranks find each other: through files in this directory, which no other user may enter, or, if it is empty,
  // at the address of rank 0.
  std::string store_directory;
  std::string master_address;
  int master_port = 0;
  bool agent_store = false;  // torchrun's agent serves that address: rank 0 is a client too
  // An identifier that only this run's processes know, so that two runs at one address do not mix. Empty if the
  // launcher has none.
  std::string job;
  int restart = 0;       // how often the launcher has started the run again
  bool by_hand = false;  // RANK and WORLD_SIZE are set, and no launcher that would end the ranks is seen
  bool begun = false;    // the launcher has seen the run begin, so it is only to be continued

  bool operator==(const Rank&) const = default;
};

// The value of an environment variable, if it is set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
// The environment variables of this process.
std::optional<std::string> environment_variable(const std::string& name);

// The innermost launcher decides, since srun may have started torchrun. Empty, which means a single process, if no
// launcher is found, and in a Slurm batch script or shell, which srun did not start as a task. Throws InputError that
// names the variable that is missing, not a number, out of range or contradicts another.
std::optional<Rank> find_rank(const Variables& variable = environment_variable);

// The names of the variables by which `gyre launch` tells a process its rank, in find_rank's terms.
inline constexpr const char* kRankVariable = "GYRE_RANK";
inline constexpr const char* kWorldVariable = "GYRE_WORLD_SIZE";
inline constexpr const char* kLocalRankVariable = "GYRE_LOCAL_RANK";
inline constexpr const char* kLocalWorldVariable = "GYRE_LOCAL_WORLD_SIZE";
inline constexpr const char* kStoreVariable = "GYRE_STORE";
inline constexpr const char* kJobVariable = "GYRE_JOB";
inline constexpr const char* kRestartVariable = "GYRE_RESTART";
inline constexpr const char* kBegunVariable = "GYRE_BEGUN";
// Files that `gyre launch` leaves in store_directory, and that rank 0 removes: the first when it has found no other run
// in the run's directory and is about to write there, so that whatever is there later is this run; the second once the
// run has begun. Removing needs no room on a disk, and if the whole directory is removed instead, the run is not begun
// a second time.
inline constexpr const char* kNotClaimedMark = "not-claimed";
inline constexpr const char* kNotBegunMark = "not-begun";
// A file that rank 0 makes there once all is done and stored, before it prints the result. It is made, not removed: if
// the whole directory is removed, nothing is known to be done.
inline constexpr const char* kDoneMark = "done";

}  // namespace gyre
