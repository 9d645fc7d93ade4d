#include "gyre/report/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <system_error>

#include "gyre/core/directories.h"
#include "gyre/core/error.h"
#include "gyre/core/host_name.h"
#include "gyre/core/timing.h"
#include "gyre/report/metrics_follower.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "tfevents";  // TensorBoard recognises its files by this part of the name

// CRC-32C (Castagnoli's polynomial, reflected), which zlib does not provide.
constexpr std::array<uint32_t, 256> kCrcOfByte = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
    table[byte] = crc;
  }
  return table;
}();

uint32_t masked_crc(std::string_view data) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : data) crc = (crc >> 8) ^ kCrcOfByte[(crc ^ static_cast<uint8_t>(c)) & 0xFFu];
  return std::rotr(~crc, 15) + 0xA282EAD8u;
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// Fields of a protocol buffer. Wire types: 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80u);
  bytes += static_cast<char>(value);
  return bytes;
}
std::string key(int field, int type) {
  return varint(static_cast<uint64_t>(field << 3 | type));
}
std::string whole_field(int field, int64_t value) {
  return key(field, 0) + varint(static_cast<uint64_t>(value));
}
std::string double_field(int field, double value) {
  return key(field, 1) + little_endian(std::bit_cast<uint64_t>(value));
}
std::string float_field(int field, float value) {
  return key(field, 5) + little_endian(std::bit_cast<uint32_t>(value));
}
std::string bytes_field(int field, std::string_view bytes) {
  return key(field, 2) + varint(bytes.size()) + std::string(bytes);
}

// Field numbers of Event: wall_time = 1, step = 2, then one of file_version = 3, summary = 5, session_log = 7.
std::string event(double wall_time, int64_t step, const std::string& what) {
  return tensorboard_record(double_field(1, wall_time) + whole_field(2, step) + what);
}

std::string event_of(const MetricsLine& line, double wall_time) {
  const std::vector<Scalar> scalars = scalars_of(line);
  return scalars.empty() ? "" : tensorboard_scalars(wall_time, line.step(), scalars);
}

void write_history(const fs::path& history, const fs::path& metrics, double last_written, FileSystem& files) {
  SessionClock whole, clock;
  double end = 0;
  MetricsFollower(metrics, "put it right").read([] {}, [&](const MetricsLine& line) { end = whole.at(line); });
  const double begun = last_written - end;
  FileWriter writer(history, files);
  writer.write(tensorboard_version(begun) + tensorboard_session_start(begun, 0));
  MetricsFollower(metrics, "put it right")
      .read([] {}, [&](const MetricsLine& line) { writer.write(event_of(line, begun + clock.at(line))); });
  writer.close();
}

// In the order in which TensorBoard reads them.
std::vector<fs::path> event_files(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> files = entries_of(directory, error);
  if (error) throw RunError(fmt::format("{}: cannot be read: {}", directory.string(), error.message()));
  std::erase_if(files, [](const fs::path& file) { return file.filename().string().find(kMark) == std::string::npos; });
  return files;
}

// The time in the file's name; 0 if there is no number.
int64_t time_of(const fs::path& event_file) {
  const std::string name = event_file.filename().string();
  const size_t begin = name.find(kMark) + std::string_view(kMark).size() + 1;
  int64_t seconds = 0;
  if (begin < name.size()) std::from_chars(name.data() + begin, name.data() + name.size(), seconds);
  return seconds;
}

}  // namespace

std::string tensorboard_record(std::string_view data) {
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  return length + little_endian(masked_crc(length)) + std::string(data) + little_endian(masked_crc(data));
}

std::string tensorboard_version(double wall_time) {
  return event(wall_time, 0, bytes_field(3, "brain.Event:2"));
}

std::string tensorboard_session_start(double wall_time, int64_t step) {
  constexpr int64_t kStart = 1;
  return event(wall_time, step, bytes_field(7, whole_field(1, kStart)));
}

// Field numbers of Summary: value = 1, in which tag = 1, simple_value = 2.
std::string tensorboard_scalars(double wall_time, int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    const bool indexed = scalar.kind->index[0] != '\0';
    const std::string tag = indexed ? fmt::format("{}_{}", scalar.kind->tag, scalar.index) : scalar.kind->tag;
    summary += bytes_field(1, bytes_field(1, tag) + float_field(2, static_cast<float>(scalar.value)));
  }
  return event(wall_time, step, bytes_field(5, summary));
}

TensorBoardWriter::TensorBoardWriter(const fs::path& directory, const fs::path& metrics, double last_written,
                                     FileSystem& files) {
  make_directories(directory, files);
  // A kill in between leaves no events rather than some of them twice; the next session writes all of them. The last
  // file is emptied and not removed: a TensorBoard that is reading it would otherwise wait for it for ever.
  const fs::path history = directory / ".history";
  write_history(history, metrics, last_written, files);
  const std::vector<fs::path> earlier = event_files(directory);
  for (const fs::path& file : earlier) {
    if (file != earlier.back()) files.remove(file);
  }
  if (!earlier.empty()) OutputFile(earlier.back(), O_WRONLY | O_TRUNC, files).close();
  const auto path_at = [&](int64_t seconds) {
    return directory / fmt::format("events.out.{}.{:010}.{}.{}", kMark, seconds, host_name(), ::getpid());
  };
  const fs::path path =
      path_at(std::max(static_cast<int64_t>(unix_seconds()), earlier.empty() ? 0 : time_of(earlier.back()) + 1));
  rename_path(history, path, files);
  file_ = std::make_unique<OutputFile>(path, O_WRONLY | O_APPEND, files);
}

void TensorBoardWriter::hear(const MetricsLine& line) {
  const std::string text = event_of(line, unix_seconds());
  file_->write(text.data(), text.size());
}

}  // namespace gyre
