#include "gyre/data/byte_source.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;
constexpr std::string_view kGzip("\x1f\x8b", 2), kZstd("\x28\xb5\x2f\xfd", 4);
constexpr size_t kMaxMagicBytes = 5;
// A zstd frame without text, after a first byte of 0x50 to 0x5f. Files of pzstd begin with one.
constexpr std::string_view kSkippable("\x2a\x4d\x18", 3);
// Other packed formats that users may give, and the command that unpacks each.
constexpr std::string_view kXz("\xfd\x37zXZ", 5);
constexpr std::pair<std::string_view, const char*> kOtherPacked[] = {
    {kXz, "xz -d"}, {"BZh", "bzip2 -d"}, {"PK\x03\x04", "unzip"}};

// A descriptor with a buffer, whose first bytes can be inspected before they are taken.
class Input {
 public:
  Input(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)), buffer_(kReadBytes) {}

  // What was read and not taken yet; empty at the end of the input.
  std::span<const char> rest() {
    if (begin_ == end_) fill(1);
    return {buffer_.data() + begin_, end_ - begin_};
  }
  void take(size_t bytes) { begin_ += bytes; }
  bool begins_with(std::string_view magic) {
    fill(kMaxMagicBytes);
    return std::string_view(buffer_.data() + begin_, end_ - begin_).starts_with(magic);
  }
  bool begins_with_zstd() {
    if (begins_with(kZstd)) return true;
    const std::span<const char> first = rest();
    return first.size() > kSkippable.size() && (first[0] & 0xF0) == 0x50 &&
           std::string_view(first.data() + 1, kSkippable.size()) == kSkippable;
  }
  int64_t taken() const { return read_; }
  [[noreturn]] void fail(const std::string& what) const { throw InputError(fmt::format("{}: {}", name_, what)); }

 private:
  // Reads until the buffer holds `bytes`, or the input ends.
  void fill(size_t bytes) {
    if (end_ - begin_ >= bytes) return;
    std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_), buffer_.begin() + static_cast<ptrdiff_t>(end_),
              buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    while (end_ < bytes) {
      const ssize_t got = ::read(descriptor_, buffer_.data() + end_, buffer_.size() - end_);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
      if (got == 0) return;
      end_ += static_cast<size_t>(got);
      read_ += got;
    }
  }

  int descriptor_;
  std::string name_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t read_ = 0;
};

class PlainBytes final : public ByteSource {
 public:
  explicit PlainBytes(Input input) : input_(std::move(input)) {}
  size_t read(std::span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const auto rest = input_.rest();
      if (rest.empty()) break;
      const size_t count = std::min(rest.size(), out.size() - done);
      std::copy_n(rest.begin(), count, out.begin() + static_cast<ptrdiff_t>(done));
      input_.take(count);
      done += count;
    }
    return done;
  }
  int64_t taken() const override { return input_.taken(); }

 private:
  Input input_;
};

constexpr const char* kCutShort = "is cut short: its last compressed block is not whole; bring the whole file";

// One or several gzip members, which `cat` may have joined.
class GzipBytes final : public ByteSource {
 public:
  explicit GzipBytes(Input input) : input_(std::move(input)) {
    constexpr int kGzipAlone = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipAlone) != Z_OK) input_.fail("cannot be unpacked: out of memory");
  }
  ~GzipBytes() override { inflateEnd(&stream_); }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

  size_t read(std::span<char> out) override {
    size_t done = 0;
    while (done < out.size() && !ended_) {
      const auto rest = input_.rest();
      if (rest.empty()) input_.fail(kCutShort);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream_.avail_in = static_cast<uInt>(rest.size());
      const size_t room = std::min<size_t>(out.size() - done, UINT32_MAX);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      stream_.avail_out = static_cast<uInt>(room);
      const int state = inflate(&stream_, Z_NO_FLUSH);
      input_.take(rest.size() - stream_.avail_in);
      done += room - stream_.avail_out;
      if (state == Z_STREAM_END) {
        next_member();
      } else if (state != Z_OK) {
        input_.fail(fmt::format("is damaged gzip ({}); bring it back",
                                stream_.msg ? stream_.msg : "what follows is not gzip data"));
      }
    }
    return done;
  }
  int64_t taken() const override { return input_.taken(); }

 private:
  // Zeros may follow the last member: tapes are padded with them.
  void next_member() {
    for (auto rest = input_.rest(); !rest.empty() && rest.front() == '\0'; rest = input_.rest()) input_.take(1);
    ended_ = input_.rest().empty();
    if (ended_) return;
    if (!input_.begins_with(kGzip)) input_.fail("has other data after its gzip data; is the file complete?");
    inflateReset(&stream_);
  }

  Input input_;
  z_stream stream_{};
  bool ended_ = false;
};

// One or several zstd frames.
class ZstdBytes final : public ByteSource {
 public:
  explicit ZstdBytes(Input input) : input_(std::move(input)), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    if (!stream_) input_.fail("cannot be unpacked: out of memory");
  }

  size_t read(std::span<char> out) override {
    ZSTD_outBuffer into{out.data(), out.size(), 0};
    while (into.pos < into.size) {
      const auto rest = input_.rest();
      if (rest.empty() && between_frames_) break;
      ZSTD_inBuffer from{rest.data(), rest.size(), 0};
      const size_t before = into.pos;
      const size_t state = ZSTD_decompressStream(stream_.get(), &into, &from);
      if (ZSTD_isError(state) != 0) {
        input_.fail(fmt::format("is damaged zstd, or was packed with --long ({}); bring it back, or pack it without",
                                ZSTD_getErrorName(state)));
      }
      input_.take(from.pos);
      between_frames_ = state == 0;
      // Output that the decoder still holds comes without more input.
      if (rest.empty() && into.pos == before && !between_frames_) input_.fail(kCutShort);
    }
    return into.pos;
  }
  int64_t taken() const override { return input_.taken(); }

 private:
  Input input_;
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  bool between_frames_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(int descriptor, const std::string& name) {
  Input input(descriptor, name);
  if (input.begins_with(kGzip)) return std::make_unique<GzipBytes>(std::move(input));
  if (input.begins_with_zstd()) return std::make_unique<ZstdBytes>(std::move(input));
  for (const auto& [magic, unpack] : kOtherPacked) {
    if (input.begins_with(magic)) {
      input.fail(fmt::format(
          "is compressed in a way that gyre does not read (it reads gzip and zstd); decompress it first, with {}",
          unpack));
    }
  }
  return std::make_unique<PlainBytes>(std::move(input));
}

}  // namespace gyre
