// Safetensors: exact round trips, and headers that the format forbids, or that lie about their sizes.
#include "gyre/checkpoint/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "checkpoint/fixture.h"
#include "gyre/checkpoint/format/safetensors_header.h"
#include "gyre/tensors/host_memory.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;

TEST(Safetensors, RoundTripsEveryTypeAndIsReproducible) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  NamedTensors tensors;
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt, at::kByte}) {
    tensors[at::toString(type)] = (at::rand({3, 4}) * 100).to(type);
  }
  tensors["scalar"] = at::scalar_tensor(1.5);
  tensors["transposed"] = at::randn({3, 4}).t();
  const WrittenFile first = write_safetensors(directory / "one", tensors);
  EXPECT_EQ(first.checksum, write_safetensors(directory / "two", tensors).checksum);
  EXPECT_EQ(first.bytes, fs::file_size(directory / "one"));
  EXPECT_EQ(first.checksum, file_checksum(directory / "one"));
  const NamedTensors back = read_safetensors(directory / "one");
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(back.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(back.at(name).equal(tensor)) << name;
  }
}

TEST(Safetensors, HeaderIsPlainJsonAndNoLongerThanReadersAllow) {
  const SafetensorsHeader header = {
      {{"a \"b\"", "F32", {2, 3}, 0, 24}, {"c", "U8", {}, 24, 25}}, 0, {{"format", "pt"}}};
  EXPECT_EQ(to_text(header).substr(8),
            R"({"__metadata__":{"format":"pt"},"a \"b\"":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
            R"("c":{"dtype":"U8","shape":[],"data_offsets":[24,25]}}     )");
  EXPECT_EQ(to_text(SafetensorsHeader()).substr(8), "{}      ");
  SafetensorsHeader longest;
  for (int i = 0; i < 100; ++i) {
    longest.tensors.push_back({fmt::format("{:02}{}", i, std::string(1'000'000, 'x')), "U8", {0}, 0, 0});
  }
  EXPECT_THAT(complaint_of([&] { to_text(longest); }), ::testing::HasSubstr("100 tensors need 100"));
}

// They outlive the file's name, and take no memory of libtorch's.
TEST(Safetensors, MappedTensorsAreThoseThatAreRead) {
  const testing_support::TemporaryDirectory place;
  const fs::path file = place.path() / "file";
  const NamedTensors tensors = {{"large", at::randn({64, 1024})}, {"none", at::empty({0, 3})}, {"one", at::ones({})}};
  write_safetensors(file, tensors);
  const HostMemory memory;
  NamedTensors mapped = map_safetensors(file);
  fs::remove(file);
  EXPECT_EQ(memory.bytes().peak, 0u);
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(mapped.at(name).equal(tensor)) << name;
  const at::Tensor large = mapped.at("large");
  mapped.clear();
  EXPECT_TRUE(large.equal(tensors.at("large")));
}

std::string file_with_header(const std::string& header, size_t data) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data, '\1');
}

TEST(Safetensors, RefusesWhatTheFormatForbids) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  const auto complaint = [&](const std::string& content) {
    std::ofstream(directory / "file", std::ios::binary) << content;
    try {
      read_safetensors(directory / "file");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(complaint(file_with_header(good, 8)), "accepted");
  EXPECT_THAT(complaint("abc"), ::testing::HasSubstr("shorter"));
  EXPECT_THAT(complaint(file_with_header(good, 7)), ::testing::HasSubstr("'a'"));
  EXPECT_THAT(complaint(file_with_header(good, 9)), ::testing::HasSubstr("too many"));
  EXPECT_THAT(complaint(file_with_header(fmt::format(" {}", good), 8)), ::testing::HasSubstr("begin with"));
  EXPECT_THAT(complaint(file_with_header("{nonsense", 8)), ::testing::HasSubstr("JSON"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr("F99"));
  EXPECT_THAT(complaint(file_with_header(R"({"a\nb":{"dtype":"F\n1","shape":[2],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr(R"('a\nb' has the unknown type F\n1)"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr("'a'"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr("'a'"));
  EXPECT_THAT(complaint(file_with_header(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8)),
              ::testing::HasSubstr("lacks"));
  // An empty tensor whose strides overflow.
  EXPECT_THAT(
      complaint(file_with_header(R"({"a":{"dtype":"U8","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})", 0)),
      ::testing::HasSubstr("'a'"));
  EXPECT_THAT(complaint(file_with_header(fmt::format(R"({{"a":[{})", std::string(1'000'000, '[')), 8)),
              ::testing::HasSubstr("the entry of 'a' is not one that the format allows"));
  EXPECT_THAT(
      complaint(file_with_header(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
          8)),
      ::testing::HasSubstr("twice"));
  EXPECT_THAT(
      complaint(file_with_header(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          8)),
      ::testing::HasSubstr("overlap"));
  EXPECT_THAT(
      complaint(file_with_header(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
          12)),
      ::testing::HasSubstr("hole"));
}

TEST(Safetensors, KnowsEveryTypeOfTheFormat) {
  const testing_support::TemporaryDirectory place;
  const fs::path file = place.path() / "file";
  const std::pair<const char*, size_t> types[] = {
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
      {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
      {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},    {"I64", 64}, {"U64", 64}};
  for (const auto& [type, bits] : types) {
    const auto write = [&](size_t elements, size_t bytes) {
      const std::string header =
          fmt::format(R"({{"a":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", type, elements, bytes);
      std::ofstream(file, std::ios::binary) << file_with_header(header, bytes);
    };
    write(4, bits / 2);
    EXPECT_NO_THROW(read_safetensors(file, [](const std::string&) { return false; })) << type;
    write(5, bits / 2);
    EXPECT_THROW(SafetensorsFile{file}, InputError) << type;
  }
  // Not all of them are read.
  std::ofstream(file, std::ios::binary) << file_with_header(
      R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  EXPECT_THROW(read_safetensors(file), InputError);
}

// Reads in a child process that may take `room` bytes more than it has. Returns the outcome.
std::string read_with_room(const fs::path& file, rlim_t room) {
  const pid_t child = ::fork();
  if (child == 0) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + room;
    const rlimit limits{most, most};
    ::setrlimit(RLIMIT_AS, &limits);
    try {
      read_safetensors(file);
      ::_exit(0);
    } catch (const InputError&) {
      ::_exit(1);
    } catch (...) {
      ::_exit(2);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return "ran out of memory";
  return WEXITSTATUS(status) == 0 ? "read" : "refused";
}

// The header says that each tensor is as large as the whole file, or larger.
TEST(Safetensors, AForgedHeaderAllocatesNoMoreThanTheFile) {
  const testing_support::TemporaryDirectory place;
  const fs::path& directory = place.path();
  const size_t data = 4 << 20;
  const auto tensor = [](int number, size_t bytes, size_t end) {
    return fmt::format(R"("t{}":{{"dtype":"U8","shape":[{}],"data_offsets":[0,{}]}})", number, bytes, end);
  };
  std::string overlapping = tensor(0, data, data);
  for (int i = 1; i < 100; ++i) overlapping += fmt::format(",{}", tensor(i, data, data));
  const auto write = [&](const char* name, const std::string& tensors) {
    std::ofstream(directory / name, std::ios::binary) << file_with_header(fmt::format("{{{}}}", tensors), data);
  };
  write("sound", tensor(0, data, data));
  write("overlapping", overlapping);
  write("large", tensor(0, size_t{1} << 50, size_t{1} << 50));
  const rlim_t room = 4 * data;  // the map, the tensor, and what else is needed
  EXPECT_EQ(read_with_room(directory / "sound", room), "read");
  EXPECT_EQ(read_with_room(directory / "overlapping", room), "refused");
  EXPECT_EQ(read_with_room(directory / "large", room), "refused");
}

}  // namespace
}  // namespace gyre
