// What processes send each other, cut into frames: of a bounded size, so that whoever receives can have memory ready
// before anything comes. Little-endian. A frame is 4 bytes, how many follow, and those; an envelope begins with a frame
// of its own:
//   header, values (double), of each tensor its type, number of dimensions and sizes; then the tensors' contents, over
//   as many frames as that takes.
// A tensor on libtorch's meta device has sizes and no contents: so are those announced that come from device to device
// (device_channel.h). Whoever reads it gets such a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gyre/runtime/transport/link.h"

namespace gyre {

// What stands on it says where a message goes.
struct Envelope {
  enum class Kind : uint32_t {
    Message,  // for a link's receiver
    Credit,   // to a link's sender: so many messages (`message.number`) were taken
    Beat,     // the process lives, and how far it has got
    Clock,    // to rank 0: what the sender's clock says (`values[0]`); back: that, and what rank 0's says
    Note,     // to rank 0: a line for the user
    Failure,  // it cannot go on: because of which process (`values[0]`), and a line that says why
    Goodbye,  // it sends nothing more
  };
  Kind kind = Kind::Message;
  int64_t segment = 0;  // which the link belongs to, counted over the run; 0: to no segment
  LinkId link;
  Message message;
};

// The largest frame. Activations of usual sizes are one frame; what is larger streams.
inline constexpr size_t kFrameBytes = size_t{1} << 20;

// An envelope on its way out.
class FrameWriter {
 public:
  explicit FrameWriter(Envelope envelope);
  // Writes the next frame into `frame`, which has kFrameBytes; returns its size. Not once done() is true.
  size_t next(std::byte* frame);
  bool done() const { return tensor_ == contents_.size(); }

 private:
  void skip_empty();

  Message message_;                   // what it holds is lent until the envelope is done
  std::vector<std::byte> head_;       // empty once it is written
  std::vector<at::Tensor> contents_;  // of those that have any: on the host, contiguous
  size_t tensor_ = 0, offset_ = 0;    // what is written next
};

// Envelopes that come in.
class FrameReader {
 public:
  // Takes the next frame. The envelope that it completes, if it does. RunError for what no FrameWriter wrote.
  std::optional<Envelope> next(const std::byte* frame);

 private:
  void skip_empty();

  Envelope envelope_;
  bool begun_ = false;
  size_t tensor_ = 0, offset_ = 0;
};

}  // namespace gyre
