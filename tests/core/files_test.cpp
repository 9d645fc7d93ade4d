// Files: writes are complete or absent; checksums and maps read what is there.
#include "gyre/core/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "gyre/core/error.h"
#include "support/faulty_files.h"
#include "support/forwarding_files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// As some network file systems are.
struct WithoutLocks final : ForwardingFiles {
  int lock(int) override {
    errno = ENOLCK;
    return -1;
  }
};

std::string complaint_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

class Files : public ::testing::Test {
 protected:
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_)) names.insert(entry.path().filename().string());
    return names;
  }
  const testing_support::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  FaultyFiles sound_;
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

TEST_F(Files, AtomicWriteThatGoesWrongAnywhereLeavesOldOrNew) {
  const int64_t faults = walk_faults(
      [&] {
        fs::remove_all(root_);
        fs::create_directories(root_);
        write_file_atomic(root_ / "a", "old", sound_);
      },
      [&](FileSystem& files) {
        try {
          write_file_atomic(root_ / "a", "new and longer", files);
          return true;
        } catch (const RunError&) {
          return false;
        }
      },
      [&](bool succeeded, Fault) {
        const std::string content = read_file(root_ / "a");
        EXPECT_TRUE(content == "new and longer" || (content == "old" && !succeeded)) << content;
      });
  EXPECT_GE(faults, 5 * 4);  // create, write, sync, rename
}

TEST_F(Files, ADirectoryThatIsMissingCannotBeOpened) {
  EXPECT_THAT(complaint_of([&] { sync_directory(root_ / "missing"); }),
              ::testing::HasSubstr("missing: cannot be opened: No such file"));
}

TEST_F(Files, DirectoryAppearsWholeOrNotAtAll) {
  for (const bool replaces : {false, true}) {
    const auto build = [&](const std::string& content, FileSystem& files) {
      try {
        DirectoryUnderConstruction directory(root_ / "under-construction", files);
        for (const char* name : {"a", "b"}) {
          FileWriter writer(directory.path() / name, files);
          writer.write(content);
          writer.close();
        }
        directory.complete(root_ / "d");
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    walk_faults(
        [&] {
          fs::remove_all(root_);
          fs::create_directories(root_);
          if (replaces) build("old", sound_);
        },
        [&](FileSystem& files) { return build("new", files); },
        [&](bool succeeded, Fault fault) {
          if (fs::exists(root_ / "d")) {
            const std::string a = read_file(root_ / "d" / "a"), b = read_file(root_ / "d" / "b");
            EXPECT_EQ(a, b);
            EXPECT_TRUE(a == "new" || (replaces && a == "old" && !succeeded)) << a;
          } else {
            EXPECT_FALSE(succeeded || replaces);
          }
          EXPECT_TRUE(build("next", sound_));  // whatever was left is in nobody's way
          EXPECT_EQ(read_file(root_ / "d" / "b"), "next");
          if (fault == Fault::Error) return;
          EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator{}), 1);
        });
  }
}

TEST_F(Files, DirectoriesAreMadeWhereTheyAreMissing) {
  make_directories(root_ / "a/b/c/");
  make_directories(root_ / "a/b/c");
  EXPECT_TRUE(fs::is_directory(root_ / "a/b/c"));
  std::ofstream(root_ / "file") << "x";
  EXPECT_THROW(make_directories(root_ / "file"), InputError);
  EXPECT_THROW(make_directories(root_ / "file" / "below"), InputError);
  fs::create_symlink(root_ / "nowhere", root_ / "dangling");
  EXPECT_THROW(make_directories(root_ / "dangling"), InputError);
  EXPECT_THROW(make_directories(""), InputError);
}

TEST_F(Files, TreesAreRemovedAndLinksNotFollowed) {
  fs::create_directories(root_ / "tree/below");
  std::ofstream(root_ / "outside") << "kept";
  std::ofstream(root_ / "tree/below/file") << "x";
  fs::create_symlink(root_ / "outside", root_ / "tree/link");
  fs::create_directory_symlink(root_, root_ / "tree/up");
  remove_tree(root_ / "tree");
  EXPECT_FALSE(fs::exists(root_ / "tree"));
  EXPECT_EQ(read_file(root_ / "outside"), "kept");
  remove_tree(root_ / "tree");
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
  const testing_support::TemporaryDirectory place;
  const auto directory = place / "locked";
  {
    const DirectoryLock lock(directory);
    EXPECT_THROW(DirectoryLock{directory}, InputError);
  }
  EXPECT_NO_THROW(DirectoryLock{directory});
  EXPECT_FALSE(std::filesystem::exists(directory));  // what it made for nothing
  {
    const DirectoryLock lock(directory);
    write_file_atomic(directory / "result", "kept");
  }
  EXPECT_TRUE(std::filesystem::exists(directory / "result"));
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);  // somebody else's
  EXPECT_NO_THROW(DirectoryLock{directory});
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

// There two at once are the user's to avoid.
TEST(DirectoryLock, NobodyIsRefusedWhereThereAreNoLocks) {
  const testing_support::TemporaryDirectory place;
  WithoutLocks files;
  EXPECT_NO_THROW(DirectoryLock(place / "locked", files));
  EXPECT_NO_THROW(DirectoryUnderConstruction(place / "built", files));
}

}  // namespace
}  // namespace gyre
