// How the processes of a run find each other: each leaves a hello, rank 0 compares them and leaves a verdict, and those
// that have links connect.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "gyre/core/address.h"
#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"
#include "gyre/core/explain.h"
#include "gyre/core/host_name.h"
#include "gyre/core/json_text.h"
#include "gyre/core/process_space.h"
#include "gyre/core/stopped.h"
#include "gyre/runtime/ranks/host_address.h"
#include "gyre/runtime/ranks/ranks.h"
#include "gyre/tensors/explain_torch.h"

namespace gyre {
namespace {

constexpr std::chrono::seconds kHearing{5};  // for a process that must only read a verdict
// For processes that are started at the same time. An error of this one is told only afterwards, so that is shorter.
constexpr std::chrono::seconds kArriving{15}, kArrivingToError{2};
// The key of rank 0's verdict: the facts of all, or the exit code of a run that does not begin.
constexpr const char* kVerdict = "the verdict of rank 0";
// The key of the exit code with which rank 0 ends before it is connected with all.
constexpr const char* kEnd = "the end of rank 0";

// The key under which a rank says who it is.
std::string hello_of(int rank) {
  return fmt::format("rank {}", rank);
}

// The key under which a rank says why it ends after its hello.
std::string withdrawal_of(int rank) {
  return fmt::format("rank {} has withdrawn", rank);
}

// The key that says that a rank has read the verdict, and needs nothing more from rank 0.
std::string has_heard(int rank) {
  return fmt::format("rank {} has heard", rank);
}

// A rank's name, from its hello.
std::string told_name(int rank, const nlohmann::json& hello) {
  return fmt::format("rank {} (process {} on {})", rank, hello.value("process", 0), hello.value("host", ""));
}

nlohmann::json own_hello() {
  return {{"host", host_name()}, {"process", ::getpid()}, {"space", process_space()}};
}

// Whether the process that left this hello is on another host. Two machines may have the same name, as "localhost".
bool is_elsewhere(const nlohmann::json& hello) {
  const auto machine = [](const std::string& space) { return space.substr(0, space.find(' ')); };
  return hello.value("host", "") != host_name() || machine(hello.value("space", "")) != machine(process_space());
}

// Whether the process that left this hello has ended, as far as that can be seen from here.
bool has_ended(const nlohmann::json& hello) {
  const std::string space = hello.value("space", "");
  return !space.empty() && space == process_space() && ::kill(hello.value("process", 0), 0) != 0 && errno == ESRCH;
}

// Throws the error for which a process does not begin, with its name and exit code.
[[noreturn]] void raise_refusal(const std::string& name, const nlohmann::json& refusal) {
  const std::string what = fmt::format("{}: {}", name, refusal["error"].get<std::string>());
  const int exit_code = refusal.value("exit", kBadInput);
  if (exit_code == kInterrupted || exit_code == kTerminated) throw Stopped(what);
  if (exit_code == kFailed) throw RunError(what);
  throw InputError(what);
}

// As the others read them.
nlohmann::json to_json(const RankFacts& facts) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [what, value] : facts) json[what] = value;
  return nlohmann::json::parse(json_text(json));
}

// The first fact in which a rank differs from rank 0, as text; nullopt if all are equal.
std::optional<std::string> difference(const RankFacts& facts, const nlohmann::json& theirs,
                                      const nlohmann::json& rank_0s) {
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (const auto& [what, any] : facts) {
    const std::string one = theirs.value(what, ""), other = rank_0s.value(what, "");
    if (one != other) return fmt::format("its {} is not that of rank 0 ({}, and {})", what, shown(one), shown(other));
  }
  return std::nullopt;
}

}  // namespace

// If another process has already come as this rank, as happens with another run at the same port, this one changes
// nothing.
void Ranks::leave_hello(nlohmann::json hello) {
  if (std::exchange(said_hello_, true)) return;
  is_double_ = !rendezvous_->leave_first(hello_of(rank_), json_text(hello));
  if (!is_double_) return;
  throw InputError(
      fmt::format("another process has come as rank {} before this one; is another run at the same address and port? "
                  "Give each its own MASTER_PORT, and --job NAME, so that they know each other apart",
                  rank_));
}

void Ranks::refuse(const std::string& why, int exit_code) {
  if (met_ || is_double_) return;
  nlohmann::json refusal = own_hello();
  refusal["error"] = why;
  refusal["exit"] = exit_code;
  if (said_hello_) {
    rendezvous_->leave(withdrawal_of(rank_), json_text(refusal));
  } else {
    leave_hello(std::move(refusal));
  }
  if (rank_ == 0) {
    rendezvous_->leave(kVerdict, json_text(nlohmann::json{{"exit", exit_code}}));
    end_others(exit_code);
  } else {
    rendezvous_->leave(has_heard(rank_), "");
  }
}

// On rank 0: leaves its exit code for all that are not connected, and waits until they have read it.
void Ranks::end_others(int exit_code) {
  rendezvous_->leave(kEnd, std::to_string(exit_code));
  // If the store ends with this process, the others must read the verdict first, also those that are about to come.
  const bool ends_store = !rendezvous_->listens_at().empty();
  const auto until = Clock::now() + std::min(exit_code == 0 ? kArriving : kArrivingToError, meet_within_);
  for (int other = 1; other < world(); ++other) {
    if (others_[static_cast<size_t>(other)].peer) continue;  // it is told by its connection
    try {
      const bool is_there = rendezvous_->has(hello_of(other));
      if (is_there && has_ended(nlohmann::json::parse(rendezvous_->find(hello_of(other), kHearing)))) continue;
      const auto left = std::chrono::ceil<std::chrono::seconds>(until - Clock::now());
      if (is_there) rendezvous_->find(has_heard(other), kHearing);
      if (!is_there && ends_store) rendezvous_->find(has_heard(other), std::max(left, std::chrono::seconds(0)));
    } catch (const Error&) {  // it is gone, or this process is to stop
    }
  }
}

void Ranks::refuse(const std::exception& error) {
  try {
    refuse(explain_torch(error), exit_code_of(error));
  } catch (const Error&) {  // nobody can be told; the caller's error says more than that
  }
}

void Ranks::meet(const RankFacts& given, std::set<std::pair<int, int>> pairs, double silence_seconds,
                 std::unique_ptr<DeviceChannels> channels) {
  RankFacts facts = {{"job", job_}, {"number of ranks", std::to_string(world())}};
  facts.insert(facts.end(), given.begin(), given.end());
  facts.emplace_back("way from device to device", channels ? "direct" : "through the host");
  channels_ = std::move(channels);
  silence_seconds_ = silence_seconds;
  nlohmann::json hello = own_hello();
  hello["address"] = rendezvous_->address();
  hello["facts"] = to_json(facts);
  if (channels_) hello["device"] = channels_->identity();
  leave_hello(std::move(hello));
  if (rank_ == 0) {
    compare(facts);
    rendezvous_->leave(kVerdict, json_text(nlohmann::json{{"facts", to_json(facts)}}));
  } else {
    compare_with_rank_0(facts);
  }
  met_ = true;
  const std::set<std::pair<int, int>> linked = pairs;
  for (int other = 1; other < world(); ++other) pairs.insert({0, other});
  try {
    connect(pairs, linked);
    watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  } catch (const std::exception& error) {  // also of a thread that cannot be started
    tell_others(error);
    throw;
  }
  if (rank_ == 0) {
    hear_of_all();
  } else {
    learn_clock();
  }
}

// Throws why a process that has left its hello waits no longer, if it does not.
void Ranks::check_waits(int rank, const nlohmann::json& hello) {
  const std::string name = told_name(rank, hello);
  std::optional<std::string> withdrawal;
  try {
    if (rendezvous_->has(withdrawal_of(rank))) withdrawal = rendezvous_->find(withdrawal_of(rank), kHearing);
  } catch (const InputError&) {  // the store has gone with rank 0
  }
  if (withdrawal) raise_refusal(name, nlohmann::json::parse(*withdrawal));
  if (has_ended(hello)) throw RunError(fmt::format("{} has ended before all ranks had met", name));
}

// On rank 0: waits until everybody is there, and checks that all are about to run the same.
void Ranks::compare(const RankFacts& facts) {
  const auto until = Clock::now() + meet_within_;
  std::string connections = fmt::format("rank 0 at {}", rendezvous_->address());
  bool is_open = !is_loopback(rendezvous_->address());
  std::map<int, nlohmann::json> hellos;
  for (int other = 1; other < world(); ++other) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(until - Clock::now());
    const auto hello =
        nlohmann::json::parse(rendezvous_->find(hello_of(other), std::max(left, std::chrono::seconds(1))));
    const std::string name = told_name(other, hello);
    if (hello.contains("error")) raise_refusal(name, hello);
    if (const auto what = difference(facts, hello["facts"], to_json(facts))) {
      throw InputError(fmt::format("{}: {}; start all ranks with the same", name, *what));
    }
    const std::string address = hello["address"];
    if (is_elsewhere(hello) && (is_loopback(address) || is_loopback(rendezvous_->address()))) {
      throw InputError(fmt::format(
          "{}: it cannot be reached from {} over {}; give all ranks --interface, with an interface of their "
          "host or its address",
          name, host_name(), is_loopback(address) ? address : rendezvous_->address()));
    }
    connections += fmt::format(", rank {} at {}", other, address);
    is_open = is_open || !is_loopback(address);
    hellos[other] = hello;
  }
  // While the last was awaited, the first may have ended, and this process may have been asked to stop.
  rendezvous_->check_stop();
  for (const auto& [other, hello] : hellos) check_waits(other, hello);
  const std::string& store = rendezvous_->listens_at();
  if (!store.empty()) network_ = fmt::format("ranks meet at {} (open on all addresses of that host)", store);
  if (is_open) network_ += fmt::format("{}connections: {}", store.empty() ? "" : "; ", connections);
}

// The verdict read may be another run's that met here earlier, so the facts are compared here too.
void Ranks::compare_with_rank_0(const RankFacts& facts) {
  const auto verdict = nlohmann::json::parse(rendezvous_->find(kVerdict, 2 * meet_within_));
  if (!verdict.contains("facts")) {
    rendezvous_->leave(has_heard(rank_), "");
    throw ToldElsewhere(verdict.at("exit"));
  }
  if (const auto what = difference(facts, to_json(facts), verdict["facts"])) {
    throw InputError(
        fmt::format("{}: {}; another run is at the same address and port", told_name(rank_, own_hello()), *what));
  }
}

// All processes go through the pairs in the same order, so that no cycle of them waits.
void Ranks::connect(const std::set<std::pair<int, int>>& pairs, const std::set<std::pair<int, int>>& linked) {
  for (const auto& [first, second] : pairs) {
    if (first != rank_ && second != rank_) continue;
    const int number = first == rank_ ? second : first;
    Other& other = others_[static_cast<size_t>(number)];
    const auto hello = nlohmann::json::parse(rendezvous_->find(hello_of(number), meet_within_));
    const std::string with = fmt::format("{} at {}", told_name(number, hello), hello.value("address", ""));
    rendezvous_->check_stop();
    check_waits(number, hello);
    std::unique_ptr<Wire> wire;
    try {
      wire = rendezvous_->connect(fmt::format("link/{}-{}", first, second), first == rank_, with);
    } catch (const Error&) {
      check_waits(number, hello);
      throw;
    }
    {
      const std::lock_guard lock(mutex_);  // peers connected already may report about this one
      other.name = told_name(number, hello);
      other.heard = Clock::now();
    }
    const bool has_channels = channels_ && linked.count({first, second}) > 0;
    if (has_channels && hello.value("device", "") != channels_->identity()) open_channels(number);
    other.peer = std::make_unique<Peer>(
        std::move(wire),
        Peer::Callbacks{[this, number](bool in_part) { hear(number, in_part); },
                        [this, number](Envelope envelope) { deliver(number, std::move(envelope)); },
                        [this, number](const std::string& why) { lose(number, fmt::format("is gone: {}", why)); }});
    other.peer->start();
  }
}

// Reports that this process cannot connect to somebody. Those already connected would wait for it in vain, and so would
// those that rank 0 has not come to yet: what keeps them from it is told by rank 0 alone.
void Ranks::tell_others(const std::exception& error) {
  for (int other = 0; other < world(); ++other) {
    if (!others_[static_cast<size_t>(other)].peer) continue;
    if (rank_ == 0) report(other, 0, "has ended the run", exit_code_of(error));
    if (rank_ != 0 && other == 0) return report_failure(explain_torch(error));
  }
  if (rank_ == 0) return end_others(exit_code_of(error));
  std::string exit_code;
  try {
    exit_code = rendezvous_->find(kEnd, kArrivingToError);
  } catch (const InputError&) {  // rank 0 goes on, or has gone without a word
    return;
  }
  rendezvous_->leave(has_heard(rank_), "");
  throw ToldElsewhere(std::stoi(exit_code));
}

// One channel for each direction; both processes first open the one from the lower rank.
void Ranks::open_channels(int number) {
  Other& other = others_[static_cast<size_t>(number)];
  const auto [low, high] = std::minmax(rank_, number);
  for (const auto& [from, to] : {std::pair(low, high), std::pair(high, low)}) {
    const bool sends = from == rank_;
    const std::string key = fmt::format("channel/{}-{}", from, to);
    if (sends) rendezvous_->leave(key, channels_->new_id());
    (sends ? other.out : other.in) = channels_->open(rendezvous_->find(key, meet_within_), sends);
  }
}

}  // namespace gyre
