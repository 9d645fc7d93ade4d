// Files: writes are complete or absent; checksums and maps read what is there.
#include "gyre/core/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "gyre/core/error.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  Files() : root_(fs::path(::testing::TempDir()) / ("gyre_files_" + std::to_string(::getpid()))) {
    fs::create_directories(root_);
  }
  ~Files() override { fs::remove_all(root_); }
  fs::path root_;
};

TEST_F(Files, WrittenInPiecesReadsBackWhole) {
  std::string expected;
  FileWriter writer(root_ / "a");
  for (int i = 0; i < 3000; ++i) {
    const std::string piece(static_cast<size_t>(i % 700), static_cast<char>('a' + i % 26));
    writer.write(piece);
    expected += piece;
  }
  EXPECT_EQ(writer.bytes_written(), expected.size());
  writer.close();
  EXPECT_EQ(read_file(root_ / "a"), expected);
  const MappedFile map(root_ / "a");
  EXPECT_EQ(map.bytes().size(), expected.size());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()), expected);
}

TEST_F(Files, WriterThatIsNotClosedLeavesNothing) {
  {
    FileWriter writer(root_ / "a");
    writer.write("half of it");
  }
  EXPECT_FALSE(fs::exists(root_ / "a"));
}

TEST_F(Files, AtomicWriteReplacesAndLeavesNoTemporary) {
  write_file_atomic(root_ / "a", "old");
  write_file_atomic(root_ / "a", "new");
  EXPECT_EQ(read_file(root_ / "a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator{}), 1);
}

TEST_F(Files, FailedAtomicWriteKeepsTheOldFile) {
  write_file_atomic(root_ / "a", "old");
  // A limit on file sizes is a disk that is full.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  EXPECT_THROW(write_file_atomic(root_ / "a", std::string(5000, 'x')), RunError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(root_ / "a"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator{}), 1);
}

TEST_F(Files, EmptyFileMapsToNothing) {
  std::ofstream(root_ / "empty");
  EXPECT_TRUE(MappedFile(root_ / "empty").bytes().empty());
}

TEST_F(Files, MissingFileIsNamed) {
  for (const auto& open : {std::function<void()>([&] { read_file(root_ / "missing"); }),
                           std::function<void()>([&] { MappedFile map(root_ / "missing"); })}) {
    try {
      open();
      ADD_FAILURE() << "opened a missing file";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("missing"));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("No such file"));
    }
  }
}

TEST_F(Files, ChecksumIsThatOfTheWholeHoweverItIsCut) {
  std::string content;
  for (int i = 0; i < 100000; ++i) content += static_cast<char>(i * 7);
  write_file_atomic(root_ / "a", content);
  Checksum pieces;
  for (size_t at = 0; at < content.size(); at += 977) {
    pieces.update(content.data() + at, std::min<size_t>(977, content.size() - at));
  }
  EXPECT_EQ(pieces.hex(), file_checksum(root_ / "a"));
  EXPECT_EQ(pieces.hex().size(), 32u);
  content[50000] ^= 1;
  Checksum other;
  other.update(content.data(), content.size());
  EXPECT_NE(other.hex(), pieces.hex());
  // The published value of XXH3-128 of nothing.
  EXPECT_EQ(Checksum().hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(DirectoryLock, OneHolderAtATime) {
  const auto directory = std::filesystem::temp_directory_path() / ("gyre-lock-" + std::to_string(::getpid()));
  {
    const DirectoryLock lock(directory);
    EXPECT_THROW(DirectoryLock{directory}, InputError);
  }
  EXPECT_NO_THROW(DirectoryLock{directory});
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace gyre
