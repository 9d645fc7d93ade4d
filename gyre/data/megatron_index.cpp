#include "gyre/data/megatron_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kVersion = 1;
constexpr size_t kHeaderBytes = 34;
constexpr size_t kBytesPerSequence = 4 + 8, kBytesPerDocument = 8;

// The type of this code in the format; empty if it is not an integer type.
std::optional<TokenType> type_of(uint8_t code) {
  switch (code) {
    case 1:
      return TokenType::U8;
    case 2:
      return TokenType::I8;
    case 3:
      return TokenType::I16;
    case 4:
      return TokenType::I32;
    case 5:
      return TokenType::I64;
    case 8:
      return TokenType::U16;
    default:
      return std::nullopt;
  }
}

template <typename Number>
Number number_at(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

// Reads consecutive numbers of a file, through a buffer.
template <typename Number>
class Numbers {
 public:
  Numbers(const InputFile& file, uint64_t offset, uint64_t count) : file_(file), offset_(offset), left_(count) {}
  Number next() {
    if (at_ == buffer_.size()) {
      constexpr uint64_t kAtOnce = 1 << 16;
      buffer_.resize(std::min(kAtOnce, left_));
      file_.read_at(offset_, buffer_.data(), buffer_.size() * sizeof(Number));
      offset_ += buffer_.size() * sizeof(Number);
      left_ -= buffer_.size();
      at_ = 0;
    }
    return buffer_[at_++];
  }

 private:
  const InputFile& file_;
  uint64_t offset_, left_;
  std::vector<Number> buffer_;
  size_t at_ = 0;
};

}  // namespace

TokenLayout read_megatron_index(const InputFile& index, const std::string& origin, uint64_t token_bytes) {
  const auto fail = [&](const std::string& what) { throw InputError(fmt::format("{}: {}", origin, what)); };
  std::array<char, kHeaderBytes> header{};
  if (index.size() < kHeaderBytes) {
    fail(fmt::format("is truncated, or not a Megatron index: it has {} bytes, and the header of an index has {}",
                     index.size(), kHeaderBytes));
  }
  index.read_at(0, header.data(), header.size());
  if (std::string_view(header.data(), kMagic.size()) != kMagic) fail("is not a Megatron index");
  const auto version = number_at<uint64_t>(header.data() + 9);
  if (version != kVersion) fail(fmt::format("is an index of version {}; gyre reads version 1", version));
  const auto code = static_cast<uint8_t>(header[17]);
  const auto type = type_of(code);
  if (!type)
    fail(fmt::format("says that its numbers have type {}, which is not a type of whole numbers, as tokens are", code));
  const auto sequences = number_at<uint64_t>(header.data() + 18), documents = number_at<uint64_t>(header.data() + 26);
  const uint64_t room = index.size() - kHeaderBytes;
  const bool fits =
      sequences <= room / kBytesPerSequence && documents <= (room - sequences * kBytesPerSequence) / kBytesPerDocument;
  if (!fits) fail(fmt::format("is truncated: it has {} bytes, too few for {} sequences", index.size(), sequences));
  const uint64_t rest = room - sequences * kBytesPerSequence - documents * kBytesPerDocument;
  if (rest == sequences && rest > 0)
    fail("is of a multimodal dataset, whose sequences have modes; gyre reads only text");
  if (rest > 0) fail(fmt::format("is too long: {} bytes follow its last document", rest));

  const uint64_t width = width_of(*type);
  Numbers<int32_t> lengths(index, kHeaderBytes, sequences);
  Numbers<int64_t> offsets(index, kHeaderBytes + 4 * sequences, sequences);
  uint64_t bytes = 0;  // cannot overflow: a sequence adds less than 2^34, and the loop stops beyond token_bytes
  for (uint64_t i = 0; i < sequences; ++i) {
    const int32_t length = lengths.next();
    const int64_t offset = offsets.next();
    if (length < 0 || offset < 0 || static_cast<uint64_t>(offset) != bytes) {
      fail(fmt::format("sequence {} of {} tokens begins at byte {}, not where the one before it ends, at {}", i, length,
                       offset, bytes));
    }
    bytes += static_cast<uint64_t>(length) * width;
    if (bytes > token_bytes) break;
  }
  if (bytes != token_bytes) {
    fail(
        fmt::format("has sequences of {}{} bytes, and the .bin beside it has {}: one of the two is truncated, or "
                    "belongs to other data",
                    bytes > token_bytes ? "at least " : "", bytes, token_bytes));
  }
  Numbers<int64_t> firsts(index, kHeaderBytes + kBytesPerSequence * sequences, documents);
  int64_t before = 0;
  for (uint64_t i = 0; i < documents; ++i) {
    const int64_t first = firsts.next();
    if (i == 0 ? first != 0 : first < before) {
      fail(fmt::format("document {} begins at sequence {}, and {}; make the index again", i, first,
                       i == 0 ? "the first one must begin at 0" : fmt::format("the one before it at {}", before)));
    }
    before = first;
  }
  if (documents == 0 || static_cast<uint64_t>(before) != sequences) {
    fail(fmt::format("its documents end at sequence {}, and it has {}; make the index again", before, sequences));
  }
  return {static_cast<int64_t>(bytes / width), *type, 0};
}

}  // namespace gyre
