// How frames get from one process to one other, and how processes find each other before that. c10d with Gloo is behind
// it (gloo/gloo.cpp); without it there is one process (gloo/no_gloo.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gyre/core/error.h"

namespace gyre {

// A frame under way.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Returns once it has gone or come. RunError when the connection is gone, or the transfer was aborted.
  virtual void wait() = 0;
  // Makes wait() return, on whatever thread it is.
  virtual void abort() = 0;
};

// A connection of two processes. Frames come in the order in which they were sent. A frame leaves when the other side
// has memory ready for it, which must be at least as long; what is longer keeps its rest.
class Wire {
 public:
  virtual ~Wire() = default;
  // bytes: (n), of type byte; theirs until the transfer has ended. Any thread.
  virtual std::unique_ptr<Transfer> send(at::Tensor bytes) = 0;
  virtual std::unique_ptr<Transfer> receive(at::Tensor bytes) = 0;
};

// Where processes meet: they leave notes for each other, and make connections.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual void leave(const std::string& key, const std::string& note) = 0;
  // The same, once: false, and nothing is left, where a process has done so before.
  virtual bool leave_first(const std::string& key, const std::string& note) = 0;
  // Whether the note is there already.
  virtual bool has(const std::string& key) = 0;
  // Waits for the note. InputError when it does not come in time.
  virtual std::string find(const std::string& key, std::chrono::seconds within) = 0;
  // Called by both of two processes with the same name, by one of them with `first`. InputError when they do not find
  // each other.
  virtual std::unique_ptr<Wire> connect(const std::string& name, bool first) = 0;
  // The address of this host that connections are made over.
  virtual const std::string& address() const = 0;
  // Where it listens for the others, on all addresses of a host: "host-a:29500". Empty where it does not.
  virtual const std::string& listens_at() const = 0;
};

// One of the two is set.
struct MeetingPlace {
  std::string directory = {};  // of this host, or shared by all
  std::string address = {};    // of the host of rank 0
  int port = 0;
  bool serves = false;         // this process is to listen there
  int world = 1;               // processes that meet
  int attempt = 0;             // of the launcher's; notes of earlier ones are not read
  std::string interface = {};  // of this host, by address or name, that connections are made over; empty: loopback
  std::chrono::seconds deadline{120};  // until the others have answered
  // Called when whatever is at the address has accepted this process and then says nothing, which no time-out of c10d's
  // ends; does not return. None: it waits.
  std::function<void(const Error&)> abandon = {};
};

// InputError when the place cannot be reached, or this build has no c10d with Gloo.
std::unique_ptr<Rendezvous> make_rendezvous(const MeetingPlace& place);

}  // namespace gyre
