#include "gyre/runtime/ranks/frames.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// Numbers are sent as they are in memory.
static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr uint32_t kMagic = 0x67797265;  // "gyre"
constexpr uint32_t kMostTensors = 1 << 16, kMostDimensions = 64;
constexpr int32_t kNoContents = 1 << 16;  // added to a tensor's type

struct Header {
  uint32_t magic = kMagic;
  Envelope::Kind kind = Envelope::Kind::Message;
  int64_t segment = 0;
  int32_t link_kind = 0, pipeline = 0, stage = 0;
  int32_t shard = 0;
  uint32_t values = 0, tensors = 0;
  int64_t number = 0;
};

RunError not_ours(const char* what) {
  return RunError(
      fmt::format("a message from another process cannot be read ({}); is every process of the same build?", what));
}

template <typename Value>
void put(std::vector<std::byte>& bytes, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

template <typename Value>
Value take(std::span<const std::byte>& bytes) {
  if (bytes.size() < sizeof(Value)) throw not_ours("it is cut short");
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

at::Tensor make_tensor(const std::vector<int64_t>& sizes, int32_t type) {
  constexpr at::ScalarType kTypes[] = {at::kByte, at::kChar,  at::kShort,  at::kInt,  at::kLong,
                                       at::kHalf, at::kFloat, at::kDouble, at::kBool, at::kBFloat16};
  const bool has_contents = (type & kNoContents) == 0;
  const auto known = std::find(std::begin(kTypes), std::end(kTypes), static_cast<at::ScalarType>(type & ~kNoContents));
  if (known == std::end(kTypes)) throw not_ours("its type is none");
  try {
    return at::empty(sizes, at::TensorOptions(*known).device(has_contents ? at::kCPU : at::kMeta));
  } catch (const c10::Error&) {
    throw not_ours("there is no room for it");
  }
}

std::byte* contents(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

}  // namespace

FrameWriter::FrameWriter(Envelope envelope) : message_(std::move(envelope.message)) {
  Header header;
  header.kind = envelope.kind;
  header.segment = envelope.segment;
  header.link_kind = static_cast<int32_t>(envelope.link.kind);
  header.pipeline = envelope.link.pipeline;
  header.stage = envelope.link.stage;
  header.shard = envelope.link.shard;
  header.number = message_.number;
  header.values = static_cast<uint32_t>(message_.values.size());
  header.tensors = static_cast<uint32_t>(message_.tensors.size());
  put(head_, header);
  for (const double value : message_.values) put(head_, value);
  for (const at::Tensor& tensor : message_.tensors) {
    put(head_, static_cast<int32_t>(tensor.scalar_type()) | (tensor.is_meta() ? kNoContents : 0));
    put(head_, static_cast<int32_t>(tensor.dim()));
    for (const int64_t size : tensor.sizes()) put(head_, size);
    if (!tensor.is_meta()) contents_.push_back(on_device(tensor, host(), message_.ready).contiguous());
  }
  if (head_.size() + sizeof(uint32_t) > kFrameBytes) {
    throw RunError(fmt::format("a message of {} values and {} tensors fits no frame", header.values, header.tensors));
  }
  skip_empty();
}

void FrameWriter::skip_empty() {
  while (tensor_ < contents_.size() && offset_ == contents_[tensor_].nbytes()) {
    ++tensor_;
    offset_ = 0;
  }
}

size_t FrameWriter::next(std::byte* frame) {
  size_t used = sizeof(uint32_t);
  std::memcpy(frame + used, head_.data(), head_.size());
  used += head_.size();
  head_.clear();
  while (!done() && used < kFrameBytes) {
    const at::Tensor& tensor = contents_[tensor_];
    const size_t part = std::min(tensor.nbytes() - offset_, kFrameBytes - used);
    std::memcpy(frame + used, contents(tensor) + offset_, part);
    used += part;
    offset_ += part;
    skip_empty();
  }
  const auto length = static_cast<uint32_t>(used - sizeof(uint32_t));
  std::memcpy(frame, &length, sizeof length);
  return used;
}

std::optional<Envelope> FrameReader::next(const std::byte* frame) {
  uint32_t length = 0;
  std::memcpy(&length, frame, sizeof length);
  if (length > kFrameBytes - sizeof length) throw not_ours("it is too long");
  std::span<const std::byte> bytes(frame + sizeof length, length);
  if (!begun_) {
    const Header header = take<Header>(bytes);
    if (header.magic != kMagic) throw not_ours("it does not begin as one");
    if (header.tensors > kMostTensors) throw not_ours("it has too many tensors");
    envelope_ = {header.kind,
                 header.segment,
                 {static_cast<LinkKind>(header.link_kind), header.pipeline, header.stage, header.shard},
                 {}};
    envelope_.message.number = header.number;
    for (uint32_t i = 0; i < header.values; ++i) envelope_.message.values.push_back(take<double>(bytes));
    for (uint32_t i = 0; i < header.tensors; ++i) {
      const auto type = take<int32_t>(bytes);
      const auto dimensions = take<int32_t>(bytes);
      if (dimensions < 0 || dimensions > static_cast<int32_t>(kMostDimensions)) throw not_ours("its sizes are none");
      std::vector<int64_t> sizes;
      for (int32_t d = 0; d < dimensions; ++d) sizes.push_back(take<int64_t>(bytes));
      envelope_.message.tensors.push_back(make_tensor(sizes, type));
    }
    begun_ = true;
    tensor_ = offset_ = 0;
    skip_empty();
  }
  const auto& tensors = envelope_.message.tensors;
  while (!bytes.empty()) {
    if (tensor_ == tensors.size()) throw not_ours("it goes on after its end");
    const size_t part = std::min(tensors[tensor_].nbytes() - offset_, bytes.size());
    std::memcpy(contents(tensors[tensor_]) + offset_, bytes.data(), part);
    bytes = bytes.subspan(part);
    offset_ += part;
    skip_empty();
  }
  if (tensor_ < tensors.size()) return std::nullopt;
  begun_ = false;
  return std::exchange(envelope_, {});
}

void FrameReader::skip_empty() {
  const auto& tensors = envelope_.message.tensors;
  while (tensor_ < tensors.size() && (tensors[tensor_].is_meta() || offset_ == tensors[tensor_].nbytes())) {
    ++tensor_;
    offset_ = 0;
  }
}

}  // namespace gyre
