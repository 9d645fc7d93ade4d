#include "gyre/checkpoint/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLargestHeader = 100'000'000;

struct TypeName {
  const char* name;
  at::ScalarType type;
};
constexpr TypeName kTypes[] = {{"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf}, {"F64", at::kDouble},
                               {"I64", at::kLong},  {"I32", at::kInt},       {"U8", at::kByte}};

const char* name_of(at::ScalarType type) {
  for (const TypeName& entry : kTypes) {
    if (entry.type == type) return entry.name;
  }
  throw RunError(fmt::format("safetensors: type {} is not supported", at::toString(type)));
}

std::string header_of(const NamedTensors& tensors) {
  Json header = Json::object();
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t bytes = tensor.nbytes();
    header[name] = {{"dtype", name_of(tensor.scalar_type())},
                    {"shape", std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end())},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

// One file being read; every error names it.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), file_(path), bytes_(file_.bytes()) {}

  NamedTensors read() {
    const Json header = parse_header();
    NamedTensors tensors;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      tensors[name] = read_tensor(name, entry, ranges);
    }
    check_tiling(ranges);
    return tensors;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}: not a sound safetensors file: {}", path_.string(), what));
  }

  Json parse_header() {
    if (bytes_.size() < 8) fail("shorter than its length field");
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), 8);
    if (length > kLargestHeader || length > bytes_.size() - 8) fail(fmt::format("the header's length is {}", length));
    data_ = bytes_.subspan(8 + length);
    const auto* text = reinterpret_cast<const char*>(bytes_.data()) + 8;
    if (length == 0 || text[0] != '{') fail("the header does not begin with '{'");
    std::set<std::string> names;
    const auto reject_duplicates = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth == 1 && event == Json::parse_event_t::key && !names.insert(parsed.get<std::string>()).second) {
        fail(fmt::format("'{}' is there twice", parsed.get<std::string>()));
      }
      return true;
    };
    Json header;
    try {
      header = Json::parse(text, text + length, reject_duplicates);
    } catch (const Json::exception&) {
      fail("the header is not JSON");
    }
    if (!header.is_object()) fail("the header is not an object");
    return header;
  }

  at::Tensor read_tensor(const std::string& name, const Json& entry,
                         std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
    std::string type;
    std::vector<int64_t> shape;
    std::vector<uint64_t> offsets;
    try {
      type = entry.at("dtype").get<std::string>();
      shape = entry.at("shape").get<std::vector<int64_t>>();
      offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
    } catch (const Json::exception&) {
      fail(fmt::format("'{}' lacks dtype, shape or data_offsets", name));
    }
    const auto* known =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& entry) { return type == entry.name; });
    if (known == std::end(kTypes)) fail(fmt::format("'{}' has the unknown type {}", name, type));
    uint64_t bytes = at::elementSize(known->type);
    for (const int64_t size : shape) {
      if (size < 0 || (size > 0 && bytes > data_.size() / static_cast<uint64_t>(size))) {
        fail(fmt::format("'{}' is larger than the file", name));
      }
      bytes *= static_cast<uint64_t>(size);
    }
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_.size() ||
        offsets[1] - offsets[0] != bytes) {
      fail(fmt::format("'{}' has offsets that do not fit its shape or the file", name));
    }
    ranges.emplace_back(offsets[0], offsets[1]);
    at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(known->type));
    if (bytes > 0) std::memcpy(tensor.data_ptr(), data_.data() + offsets[0], bytes);
    return tensor;
  }

  void check_tiling(std::vector<std::pair<uint64_t, uint64_t>>& ranges) const {
    std::sort(ranges.begin(), ranges.end());
    uint64_t end = 0;
    for (const auto& [begin, stop] : ranges) {
      if (begin != end) fail(fmt::format("a hole or an overlap at offset {}", end));
      end = stop;
    }
    if (end != data_.size()) fail(fmt::format("{} bytes too many at its end", data_.size() - end));
  }

  std::filesystem::path path_;
  MappedFile file_;
  std::span<const std::byte> bytes_;
  std::span<const std::byte> data_;
};

}  // namespace

WrittenFile write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  FileWriter writer(path);
  Checksum checksum;
  const auto put = [&](const void* data, size_t bytes) {
    writer.write(data, bytes);
    checksum.update(data, bytes);
  };
  const std::string header = header_of(tensors);
  const uint64_t length = header.size();
  put(&length, 8);
  put(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = tensor.to(at::kCPU).contiguous();
    if (plain.nbytes() > 0) put(plain.data_ptr(), plain.nbytes());
  }
  writer.close();
  return {writer.bytes_written(), checksum.hex()};
}

NamedTensors read_safetensors(const std::filesystem::path& path) {
  return Reader(path).read();
}

}  // namespace gyre
