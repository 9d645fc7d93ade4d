#include "gyre/checkpoint/format/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDimensions = 64;                         // the most that a tensor can have
constexpr uint64_t kMaxElements = uint64_t{1} << 57;          // sizes of 0 count as 1
constexpr std::pair<std::string_view, uint64_t> kTypes[] = {  // all types of the format, with the bits of an element
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},    {"I64", 64}, {"U64", 64}};

// Takes the parser's events one by one, so that of a header nothing is kept but its tensors and metadata. The levels: 1
// names of tensors, 2 fields of one tensor, 3 a list of numbers.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& origin) : origin_(origin) {}

  std::vector<TensorEntry> take() { return std::move(tensors_); }
  std::map<std::string, std::string> take_metadata() { return std::move(metadata_); }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}: not a sound safetensors file: {}", origin_, printable(what)));
  }

  bool start_object(size_t) override {
    if (level_ > 1) unexpected();
    ++level_;
    if (level_ < 2 || is_metadata_) return true;
    tensors_.emplace_back().name = name_;
    has_type_ = has_shape_ = false;
    offsets_.clear();
    return true;
  }
  bool key(std::string& key) override {
    if (level_ == 1) {
      name_ = key;
      is_metadata_ = key == "__metadata__";
    } else {
      key_ = key;
      if (is_metadata_) return true;
      const bool repeated = (key == "dtype" && has_type_) || (key == "shape" && has_shape_) ||
                            (key == "data_offsets" && !offsets_.empty());
      if (repeated) fail(fmt::format("'{}' says {} twice", name_, key));
    }
    return true;
  }
  bool string(std::string& text) override {
    if (level_ == 2 && is_metadata_) {
      metadata_[key_] = text;
      return true;
    }
    if (level_ != 2 || key_ != "dtype") unexpected();
    tensors_.back().type = text;
    has_type_ = true;
    return true;
  }
  bool start_array(size_t) override {
    if (level_ != 2 || is_metadata_ || (key_ != "shape" && key_ != "data_offsets")) unexpected();
    if (key_ == "shape") has_shape_ = true;
    ++level_;
    return true;
  }
  bool number_unsigned(uint64_t number) override {
    if (level_ != 3) unexpected();
    if (key_ == "data_offsets") {
      if (offsets_.size() == 2) unexpected();
      offsets_.push_back(number);
    } else {
      auto& shape = tensors_.back().shape;
      if (number > INT64_MAX || shape.size() == kMaxDimensions) unexpected();
      shape.push_back(static_cast<int64_t>(number));
    }
    return true;
  }
  bool end_array() override {
    --level_;
    return true;
  }
  bool end_object() override {
    --level_;
    if (level_ != 1 || is_metadata_) return true;
    if (!has_type_ || !has_shape_ || offsets_.size() != 2) {
      fail(fmt::format("'{}' lacks dtype, shape or data_offsets", name_));
    }
    tensors_.back().begin = offsets_[0];
    tensors_.back().end = offsets_[1];
    return true;
  }
  bool null() override { unexpected(); }
  bool boolean(bool) override { unexpected(); }
  bool number_integer(int64_t) override { unexpected(); }  // negative
  bool number_float(double, const std::string&) override { unexpected(); }
  bool binary(nlohmann::json::binary_t&) override { unexpected(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    fail("the header is not JSON");
  }

 private:
  [[noreturn]] void unexpected() const {
    if (level_ < 1) fail("the header is not an object");
    fail(fmt::format("the entry of '{}' is not one that the format allows", name_));
  }

  const std::string& origin_;
  std::vector<TensorEntry> tensors_;
  std::map<std::string, std::string> metadata_;
  int level_ = 0;
  std::string name_, key_;
  bool is_metadata_ = false, has_type_ = false, has_shape_ = false;
  std::vector<uint64_t> offsets_;
};

// The size in bytes that follows from type and shape.
uint64_t bytes_of(const TensorEntry& tensor, const HeaderReader& reader) {
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) { return known.first == tensor.type; });
  if (type == std::end(kTypes)) reader.fail(fmt::format("'{}' has the unknown type {}", tensor.name, tensor.type));
  bool empty = false;
  uint64_t elements = 1;
  for (const int64_t size : tensor.shape) {
    empty |= size == 0;
    const auto factor = static_cast<uint64_t>(std::max<int64_t>(size, 1));
    if (elements > kMaxElements / factor) reader.fail(fmt::format("'{}' is larger than the file", tensor.name));
    elements *= factor;
  }
  if (empty) return 0;
  const uint64_t bits = elements * type->second;
  if (bits % 8 != 0) reader.fail(fmt::format("'{}' ends within a byte", tensor.name));
  return bits / 8;
}

// Sorts the tensors by offset. They must fit their data, have distinct names, and fill the data without hole or
// overlap.
void check(std::vector<TensorEntry>& tensors, uint64_t data_bytes, const HeaderReader& reader) {
  std::vector<std::string_view> names;
  for (const TensorEntry& tensor : tensors) {
    names.push_back(tensor.name);
    const uint64_t bytes = bytes_of(tensor, reader);
    if (bytes > data_bytes) reader.fail(fmt::format("'{}' is larger than the file", tensor.name));
    if (tensor.begin > tensor.end || tensor.end > data_bytes || tensor.end - tensor.begin != bytes) {
      reader.fail(fmt::format("'{}' has offsets that do not fit its shape or the file", tensor.name));
    }
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) reader.fail(fmt::format("'{}' is there twice", *twice));

  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != end) reader.fail(fmt::format("a hole or an overlap at offset {}", end));
    end = tensor.end;
  }
  if (end != data_bytes) reader.fail(fmt::format("{} bytes too many at its end", data_bytes - end));
}

}  // namespace

std::string to_text(const SafetensorsHeader& header) {
  // Entry by entry: an object of nlohmann's that keeps its order looks for each new name among all others.
  std::string text;
  const auto add = [&](const std::string& name, const nlohmann::ordered_json& value) {
    text += fmt::format("{}{}:{}", text.empty() ? '{' : ',', nlohmann::json(name).dump(), value.dump());
  };
  if (!header.metadata.empty()) add("__metadata__", header.metadata);
  for (const TensorEntry& tensor : header.tensors) {
    add(tensor.name, {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}});
  }
  text += text.empty() ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  if (length > kMaxHeaderBytes) {
    throw RunError(
        fmt::format("{} tensors need {} bytes to be named, and a safetensors file may have {}; a smaller "
                    "model has fewer",
                    header.tensors.size(), length, kMaxHeaderBytes));
  }
  text.insert(0, sizeof(length), '\0');
  std::memcpy(text.data(), &length, sizeof(length));
  return text;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& origin) {
  HeaderReader reader(origin);
  if (file.size() < 8) reader.fail("shorter than its length field");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > kMaxHeaderBytes || length > file.size() - 8) {
    reader.fail(
        fmt::format("the header's length is {}, and the file has {} bytes; was it cut short?", length, file.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  if (text.empty() || text[0] != '{') reader.fail("the header does not begin with '{'");
  nlohmann::json::sax_parse(text, &reader);
  SafetensorsHeader header{reader.take(), 8 + length, reader.take_metadata()};
  check(header.tensors, file.size() - header.data_begin, reader);
  return header;
}

}  // namespace gyre
