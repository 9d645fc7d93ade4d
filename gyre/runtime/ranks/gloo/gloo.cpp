// Connections over c10d: a Gloo group of two processes for each. What differs between versions of libtorch is handled
// here.
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <netdb.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "gyre/core/address.h"
#include "gyre/core/error.h"
#include "gyre/core/explain.h"
#include "gyre/core/stopped.h"
#include "gyre/runtime/ranks/host_address.h"
#include "gyre/runtime/ranks/wire.h"

namespace gyre {
namespace {

constexpr std::chrono::hours kForEver{24 * 365};  // Ranks' watching thread enforces deadlines
constexpr int kTag = 1;

class GlooTransfer final : public Transfer {
 public:
  // Gloo uses `memory` until the transfer has ended.
  GlooTransfer(c10::intrusive_ptr<c10d::Work> work, at::Tensor memory)
      : memory_(std::move(memory)), work_(std::move(work)) {}
  void wait() override {
    bool arrived = false;
    try {
      arrived = work_->wait(kForEver);
    } catch (const std::exception&) {  // its text names an address, not a process
    }
    if (!arrived) throw RunError("the connection is closed");
  }
  void abort() override { work_->abort(); }

 private:
  at::Tensor memory_;
  c10::intrusive_ptr<c10d::Work> work_;
};

class GlooWire final : public Wire {
 public:
  GlooWire(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, int other) : group_(std::move(group)), other_(other) {}
  std::unique_ptr<Transfer> send(at::Tensor bytes) override {
    std::vector<at::Tensor> one = {bytes};
    return std::make_unique<GlooTransfer>(posted([&] { return group_->send(one, other_, kTag); }), std::move(bytes));
  }
  std::unique_ptr<Transfer> receive(at::Tensor bytes) override {
    std::vector<at::Tensor> one = {bytes};
    return std::make_unique<GlooTransfer>(posted([&] { return group_->recv(one, other_, kTag); }), std::move(bytes));
  }

 private:
  template <typename Post>
  static c10::intrusive_ptr<c10d::Work> posted(Post post) {
    try {
      return post();
    } catch (const std::exception&) {  // its text names an address, not a process
      throw RunError("the connection is closed");
    }
  }
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  int other_;
};

std::string store_in(const std::string& directory) {
  return directory + "/store";
}

std::string name_of(const MeetingPlace& place) {
  return place.directory.empty() ? host_and_port(place.address, place.port) : store_in(place.directory);
}

// Abandons what waits inside c10d for longer than its deadline, or after `stop` is requested.
class Deadline {
 public:
  // late: makes the error of a wait that was abandoned. Called by another thread.
  Deadline(const MeetingPlace& place, std::chrono::seconds deadline, std::function<Error()> late,
           std::stop_token stop = {}) {
    if (!place.abandon) return;
    watcher_ = std::jthread(
        [this, &place, deadline, late = std::move(late), stop = std::move(stop)](const std::stop_token& is_over) {
          const std::stop_callback wake(stop, [this] {
            const std::lock_guard lock(mutex_);
            over_.notify_all();
          });
          std::unique_lock lock(mutex_);
          constexpr std::chrono::seconds kForItsOwnTimeOut{2};
          over_.wait_for(lock, is_over, deadline + kForItsOwnTimeOut, [&] { return stop.stop_requested(); });
          if (is_over.stop_requested()) return;
          if (stop.stop_requested()) place.abandon(Stopped(kStoppedMeeting));
          place.abandon(late());
        });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread watcher_;
};

// c10d also writes errors to stderr that its exceptions already report. Users who want these lines can set
// TORCH_CPP_LOG_LEVEL.
void quiet_c10d() {
  static std::once_flag once;  // the level is global to the process
  std::call_once(once, [] {
    constexpr int kFatal = 3;
    if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
  });
}

// Later versions use libuv by default, which not all of their builds have.
template <typename Options>
void use_plain_sockets(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

// Stores are never destroyed. FileStore's destructor writes to its file, and on a full disk that ends the process;
// whoever made the directory removes it. TCPStore's waits for a thread that waits for every connection, also a
// stranger's.
c10::intrusive_ptr<c10d::Store> without_end(c10::intrusive_ptr<c10d::Store> store) {
  static auto& stores = *new std::vector<c10::intrusive_ptr<c10d::Store>>;
  static std::mutex mutex;  // tests run ranks in threads
  const std::lock_guard lock(mutex);
  return stores.emplace_back(std::move(store));
}

c10::intrusive_ptr<c10d::Store> make_store(const MeetingPlace& place) {
  if (!place.directory.empty()) {
    auto store = c10::make_intrusive<c10d::FileStore>(store_in(place.directory), place.world);
    store->setTimeout(place.deadline);  // Gloo's own does not end its wait for the other's note
    return store;
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = place.serves;
  options.waitWorkers = false;
  options.timeout = place.deadline;
  use_plain_sockets(options);
  return c10::make_intrusive<c10d::TCPStore>(place.address, options);
}

// Why the name of a host is none; empty if it is one.
std::string why_unresolved(const std::string& host) {
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (error != 0) return ::gai_strerror(error);
  ::freeaddrinfo(found);
  return "";
}

class GlooRendezvous final : public Rendezvous {
 public:
  explicit GlooRendezvous(const MeetingPlace& place) : place_(place), address_(address_of(place.interface)) {
    quiet_c10d();
    if (place.serves && place.directory.empty()) listens_at_ = host_and_port(place.address, place.port);
    try {
      const Deadline deadline = answers_within(place.deadline, place.stop);
      store_ =
          c10::make_intrusive<c10d::PrefixStore>(fmt::format("gyre/{}", place.attempt), without_end(make_store(place)));
    } catch (const std::exception& error) {
      if (is_refused_thread(error)) throw;
      throw InputError(fmt::format("{}: {}", name_of(place_), why_unreachable(error.what())));
    }
  }

  void leave(const std::string& key, const std::string& note) override {
    const Deadline deadline = answers_within(place_.deadline);
    reach([&] { store_->set(key, std::vector<uint8_t>(note.begin(), note.end())); });
  }
  bool leave_first(const std::string& key, const std::string& note) override {
    const Deadline deadline = answers_within(place_.deadline);
    const int64_t count = reach([&] { return store_->add(key + "/left", 1); });
    // c10d takes whatever is answered for a number, also the words of another program.
    constexpr int64_t kMostAtOnePlace = int64_t{1} << 20;
    if (count < 1 || count > kMostAtOnePlace) {
      throw InputError(
          fmt::format("{}: something answers there that is not rank 0; is it another program's port? Set "
                      "MASTER_ADDR to rank 0's host, and MASTER_PORT to a port that is free there",
                      name_of(place_)));
    }
    if (count == 1) leave(key, note);
    return count == 1;
  }
  bool has(const std::string& key) override {
    const Deadline deadline = answers_within(place_.deadline);
    return reach([&] { return store_->check({key}); });
  }
  void check_stop() override {
    if (place_.stop.stop_requested()) throw Stopped(kStoppedMeeting);
  }
  // Asks again and again, since c10d's own waiting cannot be stopped.
  std::string find(const std::string& key, std::chrono::seconds within) override {
    const Deadline deadline = answers_within(within);
    const auto until = std::chrono::steady_clock::now() + within;
    std::mutex mutex;
    std::condition_variable_any nobody_notifies;
    for (std::chrono::milliseconds pause{2};; pause = std::min(2 * pause, std::chrono::milliseconds(200))) {
      try {
        if (store_->check({key})) {
          const std::vector<uint8_t> note = store_->get(key);
          return {note.begin(), note.end()};
        }
      } catch (const std::exception& error) {
        if (!place_.directory.empty()) throw InputError(cannot_meet(error));
        throw InputError(fmt::format("{}: rank 0 has ended there; this rank waited for {}", name_of(place_), key));
      }
      check_stop();
      if (std::chrono::steady_clock::now() >= until) break;
      std::unique_lock lock(mutex);
      nobody_notifies.wait_for(lock, place_.stop, pause, [] { return false; });
    }
    throw InputError(fmt::format(
        "{} did not come in {} s (--meet-within); were all ranks started{}? Or does one need longer "
        "to read its data?",
        key, within.count(), place_.directory.empty() ? ", with the same MASTER_ADDR and MASTER_PORT" : ""));
  }
  std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) override {
    const auto failed = [&](const std::string& why) {
      return RunError(
          fmt::format("{} cannot be connected with from {}: {}; ranks connect over ports that the system "
                      "chooses, which a firewall must let through",
                      with, address_, why));
    };
    const auto late = [&] { return failed(fmt::format("it does not answer in {} s", place_.deadline.count())); };
    const Deadline deadline(place_, place_.deadline, late, place_.stop);
    const auto options = c10d::ProcessGroupGloo::Options::create(place_.deadline);
    options->threads = 1;
    const int rank = first ? 0 : 1;
    try {
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address_));
      return std::make_unique<GlooWire>(c10::make_intrusive<c10d::ProcessGroupGloo>(
                                            c10::make_intrusive<c10d::PrefixStore>(name, store_), rank, 2, options),
                                        1 - rank);
    } catch (const std::exception& error) {
      if (is_refused_thread(error)) throw;
      throw failed(first_line(error.what()));
    }
  }
  const std::string& address() const override { return address_; }
  const std::string& listens_at() const override { return listens_at_; }

 private:
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  std::string cannot_meet(const std::exception& error) const {
    return fmt::format("{}: the other ranks cannot be met there: {}", name_of(place_), first_line(error.what()));
  }

  Deadline answers_within(std::chrono::seconds time, std::stop_token stop = {}) const {
    return Deadline(
        place_, time, [this] { return no_answer(); }, std::move(stop));
  }
  InputError no_answer() const {
    if (!place_.directory.empty()) {
      return InputError(
          fmt::format("{}: could not be read or written in {} s; is there room in TMPDIR, and does its disk answer?",
                      name_of(place_), place_.deadline.count()));
    }
    // c10d asks for the name again and again until its own time is over, which it may notice late.
    if (const std::string why = why_no_host(); !why.empty()) {
      return InputError(fmt::format("{}: {}", name_of(place_), why));
    }
    const std::string where = fmt::format("{}: {}", name_of(place_),
                                          place_.serves ? "rank 0 does not answer itself there"
                                                        : "something listens there and does not answer this rank");
    const std::string why =
        place_.serves ? "does another program's connection hold it up?" : "is it another program's port?";
    return InputError(fmt::format("{} in {} s; {} Set MASTER_PORT to another", where, place_.deadline.count(), why));
  }

  // Empty if rank 0's address is that of a host.
  std::string why_no_host() const {
    const std::string why = why_unresolved(place_.address);
    return why.empty() ? "" : fmt::format("MASTER_ADDR is not the name of a host ({})", why);
  }

  std::string why_unreachable(const std::string& error) const {
    if (!place_.directory.empty()) return fmt::format("the other ranks cannot be met there: {}", first_line(error));
    if (error.find("ddress already in use") != std::string::npos) {
      return "the port is taken, perhaps by another run; set MASTER_PORT to one that is free";
    }
    if (const std::string why = why_no_host(); !why.empty()) return why;
    if (place_.serves) {
      return fmt::format("rank 0 listens, and is not reached there ({}); is that an address of its host (MASTER_ADDR)?",
                         first_line(error));
    }
    const std::string what =
        error.find("timed out") == std::string::npos
            ? fmt::format("rank 0 cannot be reached there ({})", first_line(error))
            : fmt::format("nobody has listened there for {} s (--meet-within)", place_.deadline.count());
    return what + "; is rank 0 running, and are these its host and port (MASTER_ADDR, MASTER_PORT)?";
  }

  template <typename Ask>
  std::invoke_result_t<Ask> reach(Ask ask) {
    try {
      return ask();
    } catch (const std::exception& error) {
      throw InputError(cannot_meet(error));
    }
  }

  const MeetingPlace place_;
  std::string address_, listens_at_;
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_rendezvous(const MeetingPlace& place) {
  return std::make_unique<GlooRendezvous>(place);
}

}  // namespace gyre
