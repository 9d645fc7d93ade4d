// Links carry everything that passes between workers, and between them and whoever runs them. A link has one sender and
// one receiver, and is bounded. No call blocks: a link says whether there is room, and whether a message has come. A
// worker that cannot go on sleeps on its doorbell, which rings for every message and whenever room is made.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gyre/tensors/device.h"
#include "gyre/tensors/lease.h"

namespace gyre {

// A message owns its contents or has them lent: it never refers to state that somebody still changes.
struct Message {
  // Microbatch or window, counted from the segment's start; -1 for the version that a segment starts with. In reports,
  // the kind of report.
  int64_t number = 0;
  std::vector<at::Tensor> tensors;
  std::vector<double> values;
  Lease lease;             // on the tensors' memory, if it is to go back to the sender
  DeviceEvent ready = {};  // after which the tensors' values are there
  // When it arrived, if another process sent it.
  std::optional<std::chrono::steady_clock::time_point> came = {};
};

class Sender {
 public:
  virtual ~Sender() = default;
  // Whether there is room for a message. To be asked before send(), except where the schedule bounds the messages under
  // way: the link has room for all of them, though to another process it may learn late that some were taken.
  virtual bool has_room() const = 0;
  // Within one process, throws RunError if there is no room.
  virtual void send(Message message) = 0;
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // The message with that number, if it has come. Messages may be taken in another order than they were sent.
  virtual std::optional<Message> try_receive(int64_t number) = 0;
  // Of the messages that have come, the one sent first.
  virtual std::optional<Message> try_receive() = 0;
  // Number of messages that have come and were not taken. Any thread.
  virtual int64_t waiting() const = 0;
};

// Sends a message whose tensors this thread's stream on `device` may still be computing.
void send_from(at::Device device, Sender& link, Message message);
// A message that has come, with its tensors on `device`, ready for this thread's work there.
std::optional<Message> arrived_on(at::Device device, std::optional<Message> message);

enum class LinkKind {
  Activation,  // into (pipeline, stage) from the stage below
  Gradient,    // into (pipeline, stage) from the stage above: with respect to the output
  Reduction,   // from (pipeline, stage) to the next in its chain: the gradient of a window
  Sum,         // from (pipeline, stage) to an owner: its shard of the chain's gradient
  Version,     // from an owner to (pipeline, stage): its shard of the stage
  TiedWeight,  // from a pipeline's first stage to its last: the tied weight of a version
  TiedSum,     // back: its gradient of a window
  Norm,        // from an owner to the one that sums them: squared norms of a window's gradients
  NormSum,     // back: the norm that gradients are clipped by
  Control,     // to a worker from the conductor
  Report,      // from a worker to the conductor
  Command,     // to a process from rank 0; outside segments
  Answer,      // back
};

struct LinkId {
  // Of Control and Report.
  static LinkId of_worker(LinkKind kind, int worker) { return {kind, 0, worker}; }
  // Of Command and Answer. line: which of several between the two processes.
  static LinkId of_rank(LinkKind kind, int rank, int line = 0) { return {kind, line, rank}; }

  LinkKind kind = LinkKind::Activation;
  int pipeline = 0;  // or the number of the line
  int stage = 0;     // or the worker, or the rank
  int shard = 0;     // if an owner is at one end
  auto operator<=>(const LinkId&) const = default;
};
// "the activation link of 1:2", "the version link of 1:2, shard 0", "the report link of worker 3", "the answer link of
// rank 1, line 2".
std::string to_string(const LinkId& id);

// The conductor, where a worker's number is expected.
inline constexpr int kConductor = -1;

struct LinkEnds {
  int from = 0, to = 0;  // workers, or kConductor
  int64_t capacity = 1;  // most messages that may wait
};

// Makes links. Each side asks for its own end; both must describe the link alike.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) = 0;
  virtual std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) = 0;
};

}  // namespace gyre
