// How frames get from one process to another, and how processes find each other first. Implemented with c10d and Gloo
// (gloo/gloo.cpp); without it there is one process (gloo/no_gloo.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"

namespace gyre {

// A frame being sent or received.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Returns once it was sent or has come. Throws RunError if the connection is gone or the transfer was aborted.
  virtual void wait() = 0;
  // Makes wait() return, on whatever thread it was called.
  virtual void abort() = 0;
};

// A connection of two processes. Frames come in the order in which they were sent. A frame is sent once the other side
// has posted memory for it, which must be at least as long; bytes beyond the frame stay as they were.
class Wire {
 public:
  virtual ~Wire() = default;
  // bytes: (n), of type byte; in use until the transfer has ended. Any thread. Throws RunError if the connection is
  // gone.
  virtual std::unique_ptr<Transfer> send(at::Tensor bytes) = 0;
  virtual std::unique_ptr<Transfer> receive(at::Tensor bytes) = 0;
};

// What Stopped (core/stopped.h) says of a meeting.
inline constexpr const char* kStoppedMeeting = "stopped before all ranks had met";

// Where processes meet: they leave notes for each other, and make connections.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual void leave(const std::string& key, const std::string& note) = 0;
  // The same, but only the first time: if a process has done so before, leaves nothing and returns false.
  virtual bool leave_first(const std::string& key, const std::string& note) = 0;
  // Whether the note is there already.
  virtual bool has(const std::string& key) = 0;
  // Throws Stopped if a stop was requested.
  virtual void check_stop() = 0;
  // Waits for the note. Throws InputError if it does not come in time, Stopped when a stop is requested.
  virtual std::string find(const std::string& key, std::chrono::seconds within) = 0;
  // Called by both processes with the same name, by one of them with `first`. `with`: who the other is, for errors.
  // Throws RunError if they do not find each other.
  virtual std::unique_ptr<Wire> connect(const std::string& name, bool first, const std::string& with) = 0;
  // The address of this host that connections are made over.
  virtual const std::string& address() const = 0;
  // Where it listens for the others, on all addresses of its host: "host-a:29500". Empty if it does not listen.
  virtual const std::string& listens_at() const = 0;
};

// Where and how to meet. Either `directory` or `address` is set.
struct MeetingPlace {
  std::string directory = {};  // of this host, or shared by all
  std::string address = {};    // of the host of rank 0
  int port = 0;
  bool serves = false;                 // this process listens there
  int world = 1;                       // number of processes that meet
  int attempt = 0;                     // of the launcher; notes of earlier attempts are not read
  std::string interface = {};          // of this host, by name or address; connections use it; empty: loopback
  std::chrono::seconds deadline{120};  // for the others to answer
  std::stop_token stop = {};           // ends the wait for others
  // Called if whatever is at the address accepts this process and then says nothing, which no time-out of c10d ends,
  // or if it waits in c10d when it is to stop. Must not return. Empty: it waits.
  std::function<void(const Error&)> abandon = {};
};

// Throws InputError if the place cannot be reached, or if this build has no c10d with Gloo.
std::unique_ptr<Rendezvous> make_rendezvous(const MeetingPlace& place);

}  // namespace gyre
