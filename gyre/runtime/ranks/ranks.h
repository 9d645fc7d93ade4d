// The processes of a run, as one of them sees them. They meet, compare what they are to run, connect in pairs and watch
// over each other; rank 0 decides what has gone wrong and tells it. Ends of links that lie in different processes keep
// their messages here.
#pragma once

#include <chrono>
#include <cstdint>
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

#include "gyre/runtime/ranks/clock_offset.h"
#include "gyre/runtime/ranks/device_channel.h"
#include "gyre/runtime/ranks/peer.h"
#include "gyre/runtime/ranks/rank_status.h"
#include "gyre/runtime/ranks/wire.h"
#include "gyre/runtime/transport/doorbell.h"

namespace gyre {

// What all processes must have alike: "configuration" -> its checksum. In the order in which differences are told.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

// Seconds by a clock that never goes back.
double steady_seconds();

class Ranks {
 public:
  // job: what all processes of this run were given alike, and no other run. clock: this process's.
  Ranks(int rank, int world, std::string job, std::unique_ptr<Rendezvous> rendezvous,
        std::chrono::seconds meet_within = std::chrono::seconds(120), double (*clock)() = steady_seconds);
  // Says goodbye. Waits for those that still answer.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int world() const { return static_cast<int>(others_.size()); }
  // Of another process that this one has met: "rank 1 (process 4711 on host-b)".
  std::string name_of(int rank) const;

  // All processes call it, with the pairs that need connections besides those to rank 0. Silence of so many seconds
  // ends the run from then on. On rank 0 InputError when somebody's facts differ from its own, or he could not begin,
  // by name; elsewhere ToldElsewhere then. `channels`: what tensors on this process's device go through; null: the
  // host.
  void meet(const RankFacts& facts, std::set<std::pair<int, int>> pairs, double silence_seconds,
            std::unique_ptr<DeviceChannels> channels = nullptr);
  // On rank 0, once all have met: what of them other hosts can reach, in words. Empty where there is no such thing.
  const std::string& network() const { return network_; }
  // Instead of meet(): this process does not begin. Of rank 0 the others take the exit code.
  void refuse(const std::string& why, int exit_code);

  // From here on for processes that have met. Sending never waits.
  void send(int to, Envelope envelope);
  // The receiving end of a link from another process; `bell` rings when a message comes. Once for each.
  class Inbox;
  std::unique_ptr<Receiver> receiver(int from, int64_t segment, const LinkId& id, int64_t capacity, Doorbell& bell);
  std::unique_ptr<Sender> sender(int to, int64_t segment, const LinkId& id, int64_t capacity, Doorbell& bell);
  // Links of this segment and those before are gone; what still comes for them is dropped.
  void end_segment(int64_t segment);

  // What went wrong, if anything did: with the name of the process that it began with. Those who wait for messages look
  // when their bell rings.
  std::optional<std::string> failure() const;
  // Whether it began with rank 0, which so cannot tell it.
  bool nobody_tells() const;
  // Tells rank 0 that this process cannot go on.
  void report_failure(const std::string& why);
  // From rank 0: it cannot go on, and tells why. The others take the exit code.
  void fail_all(int exit_code);
  // What this process ends with after a failure.
  int exit_code() const;

  // While it lives, `bell` rings at failures too, and `status`, if it is given, is what others are told; any thread
  // calls it.
  class Watch {
   public:
    Watch(Ranks& ranks, Doorbell& bell, std::function<RankStatus()> status);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Ranks& ranks_;
    Doorbell& bell_;
    bool tells_ = false;  // the status
  };
  // On rank 0: what the others last said.
  std::vector<RankStatus> others() const;
  // Elsewhere, once they have met: how far rank 0's clock is from this process's.
  ClockOffset clock_of_rank_0() const;
  // Elsewhere: a line that rank 0 is to pass on to the user. On rank 0: those that have come since the last call, with
  // the names of their ranks.
  void note(const std::string& line);
  std::vector<std::string> take_notes();
  // Whether one of them was ever asked to stop. Between segments its beats do not say so.
  bool others_asked_to_stop() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<int64_t, LinkId>;  // segment, link
  class Outbox;
  class RemoteReceiver;
  class RemoteSender;
  // Of one other process.
  struct Other {
    std::string name;  // "rank 1 (process 4711 on host-b)"
    std::unique_ptr<Peer> peer;
    std::unique_ptr<DeviceChannel> out, in;  // none where tensors go through the host
    std::mutex order;                        // what goes out is announced in the order in which it is sent
    Clock::time_point heard = Clock::now();
    RankStatus status;
    bool lost = false;
    bool left = false;  // has said goodbye
  };

  bool answers(int number) const;
  void leave_hello(nlohmann::json hello);
  void compare(const RankFacts& facts);
  void compare_with_rank_0(const RankFacts& facts);
  void connect(const std::set<std::pair<int, int>>& pairs);
  void tell_connected(const Error& error);
  void open_channels(int number);
  bool goes_by_channel(const Other& other, const Envelope& envelope) const;
  void take_contents(Other& from, Message& message);
  void deliver(int from, Envelope envelope);
  void fail(int rank, const std::string& why);
  void lose(int rank, const std::string& why);
  void report(int to, int about, const std::string& why, int exit_code = 1);
  template <typename Box>
  std::shared_ptr<Box> box(std::map<Key, std::shared_ptr<Box>>& boxes, const Key& key);
  void learn_clock();
  void ask_for_time();
  void answer_time(int from, Message message);
  void watch(const std::stop_token& stop);
  void send_beats();
  void find_silence();

  int rank_;
  std::string job_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<DeviceChannels> channels_;
  double (*clock_)();
  std::chrono::seconds meet_within_;
  bool said_hello_ = false;
  bool is_double_ = false;  // another process has come as this rank
  std::string network_;
  double silence_seconds_ = 0;
  mutable std::mutex mutex_;
  std::vector<Other> others_;  // [rank]; its own is empty
  std::map<Key, std::shared_ptr<Inbox>> inboxes_;
  std::map<Key, std::shared_ptr<Outbox>> outboxes_;
  int64_t ended_segment_ = 0;
  std::optional<std::pair<int, std::string>> failure_;  // where it began, and the line that tells it
  bool rank_0_tells_ = true;
  int exit_code_ = 1;  // of rank 0's telling
  bool met_ = false;
  bool asked_to_stop_ = false;  // one of the others
  ClockOffset clock_of_rank_0_;
  std::vector<std::string> notes_;
  std::set<Doorbell*> bells_;
  std::function<RankStatus()> status_;
  std::mutex sleep_mutex_;
  std::condition_variable_any sleep_;
  std::jthread watcher_;
};

// Waits for the link's next message. RunError when the run cannot go on, or when a stop is requested.
Message wait_for(Ranks& ranks, Receiver& link, Doorbell& bell, const std::stop_token& stop = {});

// Text as a tensor of bytes, to be sent.
at::Tensor to_tensor(const std::string& text);
std::string to_text(const at::Tensor& bytes);

}  // namespace gyre
