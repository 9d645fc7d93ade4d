// What processes send each other, cut into frames of bounded size, so that the receiver can provide memory before
// anything comes. Little-endian. A frame is 4 bytes with the number of bytes that follow, and those bytes. An envelope
// begins with a new frame:
//   header, values (double), type, number of dimensions and sizes of each tensor; then the tensors' contents, over as
//   many frames as they take.
// A tensor on libtorch's meta device has sizes and no contents, and arrives as such a tensor. It announces a tensor
// that goes from device to device (device_channel.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gyre/runtime/transport/link.h"

namespace gyre {

// A message with its address.
struct Envelope {
  enum class Kind : uint32_t {
    Message,  // for a link's receiver
    Credit,   // to a link's sender: this many messages (`message.number`) were taken
    Beat,     // the process is alive, and how far its workers have got
    Clock,    // to rank 0: the sender's clock (`values[0]`); back: the same, and rank 0's clock
    Note,     // to rank 0: a line for the user
    Failure,  // the sender cannot go on: because of which process (`values[0]`), and why, as a line
    Goodbye,  // the sender sends nothing more
  };
  Kind kind = Kind::Message;
  int64_t segment = 0;  // the segment of the link, counted over the run; 0: outside segments
  LinkId link;
  Message message;
};

// Size of the largest frame. Usual activations fit one frame; larger ones take several.
inline constexpr size_t kFrameBytes = size_t{1} << 20;

// An envelope being sent.
class FrameWriter {
 public:
  explicit FrameWriter(Envelope envelope);
  // Writes the next frame into `frame`, which has kFrameBytes; returns its size. Must not be called once done() is
  // true.
  size_t next(std::byte* frame);
  bool done() const { return tensor_ == contents_.size(); }

 private:
  void skip_empty();

  Message message_;                   // its lease is held until the envelope is done
  std::vector<std::byte> head_;       // empty once it is written
  std::vector<at::Tensor> contents_;  // all but meta tensors: on the host, contiguous
  size_t tensor_ = 0, offset_ = 0;    // where writing continues
};

// Puts the frames that come together into envelopes.
class FrameReader {
 public:
  // Takes the next frame. Returns the envelope that it completes, if any. Throws RunError for bytes that no FrameWriter
  // wrote.
  std::optional<Envelope> next(const std::byte* frame);

 private:
  void skip_empty();

  Envelope envelope_;
  bool begun_ = false;
  size_t tensor_ = 0, offset_ = 0;
};

}  // namespace gyre
