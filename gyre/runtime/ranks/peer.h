// One other process, as this one sees it: exchanges envelopes with it over a wire, in order. Sending never waits.
// Memory for the next frames is posted ahead, and what comes is delivered at once: the links limit how many messages
// may be under way.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gyre/runtime/ranks/frames.h"
#include "gyre/runtime/ranks/wire.h"

namespace gyre {

class Peer {
 public:
  // They are called on threads of the peer's, and must outlive it. `heard`: a frame has come; more of the same envelope
  // are to follow if `in_part`. `lost`: the connection is gone; called at most once.
  struct Callbacks {
    std::function<void(bool in_part)> heard;
    std::function<void(Envelope)> deliver;
    std::function<void(const std::string& why)> lost;
  };
  Peer(std::unique_ptr<Wire> wire, Callbacks callbacks);
  // Aborts the connection unless both sides have closed it.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // From here on the callbacks may be called. Call it once, when the peer is where the callbacks look for it.
  void start();
  // Any thread, after start(). After the connection is lost or closed, envelopes are dropped.
  void send(Envelope envelope);
  // Closes this side: sends nothing after what has been given so far.
  void close();
  // Waits until both sides have closed, or the connection is gone.
  void join();
  // Stops waiting for the other side; `lost` is not called.
  void give_up();

 private:
  struct Posted {
    at::Tensor frame;  // (kFrameBytes) bytes
    std::unique_ptr<Transfer> transfer;
  };
  void post_sends();
  void post_receive(at::Tensor frame);
  void send_on();
  void receive_on();
  void lose(const std::string& why);

  std::unique_ptr<Wire> wire_;
  Callbacks callbacks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<FrameWriter> outgoing_;
  std::vector<at::Tensor> free_;  // free frames to send with
  std::deque<Posted> sends_, receives_;
  bool closed_ = false;  // by this side
  bool gone_ = false;
  std::jthread sender_, receiver_;
};

}  // namespace gyre
