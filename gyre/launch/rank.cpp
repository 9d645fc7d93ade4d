#include "gyre/launch/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

constexpr int kMaxRanks = 65536;
constexpr int kMaxPort = 65535;
constexpr int kDefaultPort = 29500;  // PyTorch's default, which users open in their firewalls

// Reads the variables of a launcher, which was recognised by one of them, `mark`.
class Reader {
 public:
  Reader(const Variables& variable, const char* mark) : variable_(variable), mark_(mark) {}

  std::optional<std::string> find(const char* name) const { return variable_(name); }
  bool has(const char* name) const { return variable_(name).has_value(); }

  // Throws InputError that names all of them that are not set.
  void require(const std::vector<const char*>& names) const {
    std::vector<std::string> missing;
    for (const char* name : names) {
      if (!has(name)) missing.emplace_back(name);
    }
    if (missing.empty()) return;
    const bool is_one = missing.size() == 1;
    throw InputError(fmt::format("{} {} not set, but {} is, and a launcher sets {}; unset {} if none was used",
                                 join(missing, ", "), is_one ? "is" : "are", mark_, is_one ? "both" : "all", mark_));
  }

  std::string text(const char* name) const {
    require({name});
    const auto value = find(name);
    if (value->empty())
      throw InputError(fmt::format("{} is empty; set all variables that a launcher sets, or none", name));
    return *value;
  }

  int number(const char* name, int min, int max) const { return number_in(name, text(name), min, max); }
  int number_or(const char* name, int fallback, int min, int max) const {
    return has(name) ? number(name, min, max) : fallback;
  }

  // `value` is the variable's value, or a part of it.
  static int number_in(const char* name, std::string_view value, int min, int max) {
    int number = 0;
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, number);
    const bool too_large = error == std::errc::result_out_of_range && rest == end;
    if (!too_large && (error != std::errc{} || rest != end)) {
      throw InputError(fmt::format("{} is '{}', which is not a whole number", name, printable(value)));
    }
    if (too_large || number < min || number > max) {
      throw InputError(fmt::format("{} is {}; it can be {} to {}", name, value, min, max));
    }
    return number;
  }

 private:
  const Variables& variable_;
  const char* mark_;
};

struct Counts {
  const char *rank, *world, *local_rank, *local_world;  // local_world: null if the launcher gives it in another way
};

// A launcher: the variables that show it, the variables of its counts, and a function that reads the rest.
struct Launcher {
  const char* name;
  std::array<const char*, 2> marks;  // the presence of either shows it
  Counts counts;
  void (*complete)(const Reader&, Rank&);
  bool by_hand = false;  // set by users, so perhaps left over from something else
  // If the variable `except` has the value `except_value`, this launcher did not start the process.
  const char *except = nullptr, *except_value = nullptr;
};

// The variable that shows the launcher, or null.
const char* mark_of(const Launcher& launcher, const Variables& variable) {
  if (launcher.except != nullptr && variable(launcher.except) == launcher.except_value) return nullptr;
  const auto found = std::ranges::find_if(launcher.marks, [&](const char* mark) { return variable(mark).has_value(); });
  return found == launcher.marks.end() ? nullptr : *found;
}

// Rank 0's address, for launchers that do not always give it.
void find_master(const Reader& reader, Rank& rank, const std::optional<std::string>& fallback) {
  if (reader.has("MASTER_ADDR")) {
    rank.master_address = reader.text("MASTER_ADDR");
  } else if (rank.local_world == rank.world) {
    rank.master_address = "127.0.0.1";
  } else if (fallback) {
    rank.master_address = *fallback;
  } else {
    throw InputError(
        "MASTER_ADDR is not set, and nothing else tells on which host rank 0 is; set it for all ranks, as in mpirun -x "
        "MASTER_ADDR=HOST");
  }
  rank.master_port = reader.number_or("MASTER_PORT", kDefaultPort, 1, kMaxPort);
}

void complete_own(const Reader& reader, Rank& rank) {
  rank.store_directory = reader.text(kStoreVariable);
  rank.job = reader.text(kJobVariable);
  rank.restart = reader.number(kRestartVariable, 0, std::numeric_limits<int>::max());
  rank.begun = reader.number_or(kBegunVariable, 0, 0, 1) == 1;
}

void complete_by_hand(const Reader& reader, Rank& rank) {
  find_master(reader, rank, std::nullopt);
}

void complete_torchrun(const Reader& reader, Rank& rank) {
  reader.require({"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"});
  find_master(reader, rank, std::nullopt);
  rank.agent_store = reader.find("TORCHELASTIC_USE_AGENT_STORE") == "True";
  rank.job = reader.text("TORCHELASTIC_RUN_ID");
  if (rank.job == "none") rank.job.clear();  // torchrun's default, which other runs have too
  rank.restart = reader.number("TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int>::max());
}

void complete_open_mpi(const Reader& reader, Rank& rank) {
  find_master(reader, rank, std::nullopt);
  rank.job = reader.find("PMIX_NAMESPACE").value_or("");
}

void complete_hydra(const Reader& reader, Rank& rank) {
  find_master(reader, rank, std::nullopt);
}

// The number of tasks on host number `host`, from Slurm's short form: "4(x2),3" is 4, 4, 3.
int tasks_on_host(const char* name, std::string_view text, int host) {
  for (int passed = 0; !text.empty();) {
    const std::string_view entry = text.substr(0, text.find(','));
    const size_t repeat = entry.find("(x");
    const bool repeated = repeat != std::string_view::npos && entry.ends_with(')');
    const std::string_view tasks = repeated ? entry.substr(0, repeat) : entry;
    const std::string_view times = repeated ? entry.substr(repeat + 2, entry.size() - repeat - 3) : "1";
    const int hosts = Reader::number_in(name, times, 1, kMaxRanks);
    if (host < passed + hosts) return Reader::number_in(name, tasks, 1, kMaxRanks);
    passed += hosts;
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
  }
  throw InputError(fmt::format("{} has too few entries for SLURM_NODEID, which is {}", name, host));
}

// The first host of Slurm's list: "node[07-09,12],login" is node07, node08, node09, node12, login.
std::string first_host(std::string_view hosts) {
  const size_t bracket = hosts.find_first_of("[,");
  std::string host(hosts.substr(0, bracket));
  if (bracket == std::string_view::npos || hosts[bracket] == ',') return host;
  const size_t end = hosts.find_first_of("-,]", bracket + 1);
  host += hosts.substr(bracket + 1, end - bracket - 1);
  const size_t closed = hosts.find(']', bracket);
  if (closed != std::string_view::npos) {
    const std::string_view rest = hosts.substr(closed + 1);
    host += first_host(rest.substr(0, rest.find(',')));
  }
  return host;
}

void complete_slurm(const Reader& reader, Rank& rank) {
  constexpr const char* kTasks = "SLURM_STEP_TASKS_PER_NODE";
  rank.local_world = tasks_on_host(kTasks, reader.text(kTasks), reader.number("SLURM_NODEID", 0, kMaxRanks));
  find_master(reader, rank, first_host(reader.text("SLURM_STEP_NODELIST")));
  rank.job = fmt::format("{}.{}", reader.text("SLURM_JOB_ID"), reader.text("SLURM_STEP_ID"));
  rank.restart = reader.number_or("SLURM_RESTART_COUNT", 0, 0, std::numeric_limits<int>::max());
}

constexpr Counts kPmi{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

// The innermost first: a launcher that may start another one comes after it.
constexpr Launcher kLaunchers[] = {
    {"gyre launch",
     {kRankVariable, kWorldVariable},
     {kRankVariable, kWorldVariable, kLocalRankVariable, kLocalWorldVariable},
     complete_own},
    {"torchrun",
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
     {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
     complete_torchrun},
    // Those of torchrun's variables that users and other launchers set too.
    {"RANK and WORLD_SIZE",
     {"RANK", "WORLD_SIZE"},
     {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
     complete_by_hand,
     true},
    {"mpirun",
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
     complete_open_mpi},
    // MPICH's and Intel's. It starts its helpers with srun where there is one, and srun may set the two PMI variables
    // as well.
    {"mpiexec", {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, kPmi, complete_hydra},
    // A batch script has SLURM_PROCID and SLURM_NTASKS too, and is one process; only what srun starts has those of a
    // step. The shell that salloc opens is a step of this ID.
    {"srun",
     {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr},
     complete_slurm,
     false,
     "SLURM_STEP_ID",
     "4294967290"},
    {"mpiexec", {"PMI_RANK", "PMI_SIZE"}, kPmi, complete_hydra},
};

const Launcher* first_seen(std::span<const Launcher> from, const Variables& variable) {
  const auto found =
      std::ranges::find_if(from, [&](const Launcher& launcher) { return mark_of(launcher, variable) != nullptr; });
  return found == from.end() ? nullptr : &*found;
}

void check_below(const char* name, int number, const char* world_name, int world) {
  if (number < world) return;
  throw InputError(fmt::format("{} is {}, but {} is {}; ranks are counted from 0", name, number, world_name, world));
}

Rank read_counts(const Launcher& launcher, const Reader& reader) {
  const Counts& names = launcher.counts;
  std::vector<const char*> needed = {names.rank, names.world, names.local_rank};
  if (names.local_world != nullptr) needed.push_back(names.local_world);
  reader.require(needed);
  Rank rank;
  rank.launcher = launcher.name;
  rank.rank = reader.number(names.rank, 0, kMaxRanks - 1);
  rank.world = reader.number(names.world, 1, kMaxRanks);
  rank.local_rank = reader.number(names.local_rank, 0, kMaxRanks - 1);
  if (names.local_world != nullptr) rank.local_world = reader.number(names.local_world, 1, kMaxRanks);
  check_below(names.rank, rank.rank, names.world, rank.world);
  return rank;
}

void check_local(const Launcher& launcher, const Rank& rank) {
  const Counts& names = launcher.counts;
  const char* const local_world = names.local_world != nullptr ? names.local_world : "SLURM_STEP_TASKS_PER_NODE";
  check_below(names.local_rank, rank.local_rank, local_world, rank.local_world);
  if (rank.local_world > rank.world) {
    throw InputError(fmt::format("{} is {}, but {} is {}: more ranks on this host than in all", local_world,
                                 rank.local_world, names.world, rank.world));
  }
}

// Variables that users set may be left over from something else. Throws InputError if a real launcher contradicts them.
void check_against(const Launcher& other, const Variables& variable, const Rank& by_hand) {
  const Rank said = read_counts(other, Reader(variable, mark_of(other, variable)));
  if (said.world == 1 || (said.rank == by_hand.rank && said.world == by_hand.world)) return;
  throw InputError(
      fmt::format("RANK is {} and WORLD_SIZE is {}, but {} says that this is rank {} of {}; unset RANK and WORLD_SIZE",
                  by_hand.rank, by_hand.world, other.name, said.rank, said.world));
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<Rank> find_rank(const Variables& variable) {
  const std::span<const Launcher> all = kLaunchers;
  const Launcher* const nearest = first_seen(all, variable);
  if (nearest == nullptr) return std::nullopt;
  const Reader reader(variable, mark_of(*nearest, variable));
  Rank rank = read_counts(*nearest, reader);
  if (nearest->by_hand) {
    const Launcher* const other = first_seen(all.subspan(static_cast<size_t>(nearest - all.data()) + 1), variable);
    if (other != nullptr) check_against(*other, variable, rank);
    rank.by_hand = other == nullptr;
  }
  nearest->complete(reader, rank);
  check_local(*nearest, rank);
  return rank;
}

}  // namespace gyre
