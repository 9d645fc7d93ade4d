// The processes of a run, as one of them sees them. They meet, compare what they are to run, connect in pairs, and
// watch over each other; rank 0 decides what went wrong and reports it. Messages between processes wait here until they
// are taken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/exit_code.h"
#include "gyre/runtime/ranks/clock_offset.h"
#include "gyre/runtime/ranks/device_channel.h"
#include "gyre/runtime/ranks/mailboxes.h"
#include "gyre/runtime/ranks/peer.h"
#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/runtime/ranks/wire.h"
#include "gyre/runtime/transport/doorbell.h"

namespace gyre {

// What must be equal in all processes: "configuration" -> its checksum. Differences are reported in this order.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

// Seconds by a monotonic clock.
double steady_seconds();

class Ranks {
 public:
  // job: a text given to all processes of this run, and to no other run. clock: this process's.
  Ranks(int rank, int world, std::string job, std::unique_ptr<Rendezvous> rendezvous,
        std::chrono::seconds meet_within = std::chrono::seconds(120), double (*clock)() = steady_seconds);
  // Says goodbye. Waits for those that still answer.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int world() const { return static_cast<int>(others_.size()); }
  // The name of another process that this one has met: "rank 1 (process 4711 on host-b)".
  std::string name_of(int rank) const;

  // Called by all processes, with the pairs that need connections besides those to rank 0. On rank 0 it returns when
  // all are connected, or when there is a failure. From then on, silence of `silence_seconds` ends the run. On rank 0,
  // throws InputError if a process's facts differ from its own, and what kept a process from beginning, by its name;
  // the others then throw ToldElsewhere. `channels`: for tensors on this process's device; null: through the host, as
  // between processes that share a device or have no links.
  void meet(const RankFacts& facts, std::set<std::pair<int, int>> pairs, double silence_seconds,
            std::unique_ptr<DeviceChannels> channels = nullptr);
  // On rank 0, once all have met: which of their addresses other hosts can reach, as text. Empty if there are none.
  const std::string& network() const { return network_; }
  // Instead of meet(): this process does not begin. If it is rank 0, the others end with its exit code.
  void refuse(const std::string& why, int exit_code);
  // The same because of `error`, which libtorch may have thrown. Does nothing once all have met.
  void refuse(const std::exception& error);

  // From here on only for processes that have met; std::logic_error for a pair that is not connected. Sending never
  // waits.
  void send(int to, Envelope envelope);
  // The ends of a link with another process. `bell` rings when a message comes, or when room is made. Call once per
  // end.
  std::unique_ptr<Receiver> receiver(int from, int64_t segment, const LinkId& id, int64_t capacity, Doorbell& bell);
  std::unique_ptr<Sender> sender(int to, int64_t segment, const LinkId& id, int64_t capacity, Doorbell& bell);
  // Drops the links of this segment and of those before, and whatever still comes for them.
  void end_segment(int64_t segment) { mailboxes_.end_segment(segment); }

  // How many parts of messages that were not yet whole have come, since the beginning. While that grows, nothing
  // stalls.
  uint64_t parts() const { return parts_.load(); }

  // What went wrong, if anything did, with the name of the process in which it began. Those waiting for messages check
  // this when their bell rings.
  std::optional<std::string> failure() const;
  // Throws it as a RunError, if there is one.
  void raise_failure() const;
  // Whether the failure began with rank 0, which therefore cannot report it.
  bool nobody_tells() const;
  // Tells rank 0 that this process cannot go on.
  void report_failure(const std::string& why);
  // On rank 0: tells the others that it has ended the run. They end with this exit code.
  void fail_all(int exit_code);
  // This process's exit code after a failure.
  int exit_code() const;

  // While it exists, `bell` also rings at failures, and `status`, if given, is what this process reports about itself;
  // any thread may call it.
  class Watch {
   public:
    Watch(Ranks& ranks, Doorbell& bell, std::function<RankStatus()> status);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Ranks& ranks_;
    Doorbell& bell_;
    bool tells_ = false;  // `status` was given
  };
  // On rank 0: the latest reports of the others.
  std::vector<RankStatus> others() const;
  // On other ranks, once they have met: how far rank 0's clock is from this process's.
  ClockOffset clock_of_rank_0() const;
  // note: on other ranks, sends a line that rank 0 passes on to the user. take_notes: on rank 0, the lines that have
  // come since the last call, with the names of their ranks.
  void note(const std::string& line);
  std::vector<std::string> take_notes();
  // Whether one of the others was ever asked to stop. Their beats between segments do not say so.
  bool others_asked_to_stop() const;

 private:
  using Clock = std::chrono::steady_clock;
  // State about one other process.
  struct Other {
    std::string name;  // "rank 1 (process 4711 on host-b)"
    std::unique_ptr<Peer> peer;
    std::unique_ptr<DeviceChannel> out, in;  // null if tensors go through the host
    std::mutex order;                        // sends are announced in the order in which they are made
    Clock::time_point heard = Clock::now();
    bool has_spoken = false;  // since they are connected; it does so once it is connected with all that it has to be
    RankStatus status;
    bool lost = false;
    bool left = false;  // has said goodbye
  };

  bool answers(int number) const;
  void leave_hello(nlohmann::json hello);
  void end_others(int exit_code);
  void check_waits(int rank, const nlohmann::json& hello);
  void compare(const RankFacts& facts);
  void compare_with_rank_0(const RankFacts& facts);
  // linked: the pairs that may have channels from device to device.
  void connect(const std::set<std::pair<int, int>>& pairs, const std::set<std::pair<int, int>>& linked);
  void tell_others(const std::exception& error);
  void open_channels(int number);
  bool goes_by_channel(const Other& other, const Envelope& envelope) const;
  void take_contents(Other& from, Message& message);
  void hear(int from, bool in_part);
  void deliver(int from, Envelope envelope);
  void fail(int rank, const std::string& why);
  double stopped_just_now() const;
  void lose(int rank, const std::string& why);
  void report(int to, int about, const std::string& why, int exit_code = kFailed);
  void hear_of_all();
  void learn_clock();
  void ask_for_time();
  void answer_time(int from, Message message);
  void watch(const std::stop_token& stop);
  void keep_watch(const std::stop_token& stop);
  void look_at_clock();
  void send_beats();
  void find_silence();

  int rank_;
  std::string job_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<DeviceChannels> channels_;
  double (*clock_)();
  std::chrono::seconds meet_within_;
  bool said_hello_ = false;
  bool is_double_ = false;  // another process came first as this rank
  std::string network_;
  double silence_seconds_ = 0;
  Mailboxes mailboxes_;
  std::atomic<uint64_t> parts_ = 0;
  mutable std::mutex mutex_;
  std::optional<Clock::time_point> looked_;  // when the watcher last did
  // The last time in which it did not look for so long that the others may have given this process up: when that ended,
  // and how long it was.
  std::optional<std::pair<Clock::time_point, double>> stopped_;
  std::vector<Other> others_;                           // [rank]; this process's own is empty
  std::optional<std::pair<int, std::string>> failure_;  // the rank where it began, and the line that reports it
  bool rank_0_tells_ = true;
  int exit_code_ = kFailed;  // replaced by the one that rank 0 sends
  bool met_ = false;
  bool asked_to_stop_ = false;  // one of the others was
  ClockOffset clock_of_rank_0_;
  std::vector<std::string> notes_;
  std::set<Doorbell*> bells_;
  std::function<RankStatus()> status_;
  std::mutex sleep_mutex_;
  std::condition_variable_any sleep_;
  std::jthread watcher_;
};

// Who is told, once, that a message has not come for so long. The wait goes on.
struct Patience {
  double seconds = 0;
  std::function<void()> when_over = {};  // null: nobody is told
};
// Waits for the link's next message. Throws RunError if the run cannot go on, or when a stop is requested.
Message wait_for(Ranks& ranks, Receiver& link, Doorbell& bell, const std::stop_token& stop = {},
                 Patience patience = {});

// Text as a tensor of bytes, and back.
at::Tensor to_tensor(const std::string& text);
std::string to_text(const at::Tensor& bytes);

}  // namespace gyre
