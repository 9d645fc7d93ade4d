// One other process, as this one sees it: envelopes go to it and come from it over a wire, in order. Sending never
// waits. Memory for the next frames is posted ahead, and what comes is handed on at once: how many messages may be
// under way is the links' to say.
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
  // Both are called on a thread of the peer's, and outlive it. `lost`: the connection is gone; at most once.
  struct Callbacks {
    std::function<void(Envelope)> deliver;
    std::function<void(const std::string& why)> lost;
  };
  Peer(std::unique_ptr<Wire> wire, Callbacks callbacks);
  // Gives the connection up unless both sides have closed it.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // From here on the callbacks may be called, which so find the peer where its owner has put it. Once.
  void start();
  // Any thread, after start(). What is sent after the connection was lost or closed goes nowhere.
  void send(Envelope envelope);
  // Sends nothing more after what has been given so far.
  void close();
  // Once both sides have closed, or the connection is gone.
  void join();
  // Nothing waits for the other side any more; `lost` is not called.
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
  std::vector<at::Tensor> free_;  // frames to send with
  std::deque<Posted> sends_, receives_;
  bool closed_ = false;  // here
  bool gone_ = false;
  std::jthread sender_, receiver_;
};

}  // namespace gyre
