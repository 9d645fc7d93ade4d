// Files: writes are complete or absent; checksums and maps read what is there.
#include "gyre/core/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <set>

#include "gyre/core/error.h"
#include "gyre/core/private_directory.h"
#include "support/faulty_files.h"
#include "support/forwarding_files.h"
#include "support/temporary_directory.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// A file system without locks, as some network file systems are.
struct WithoutLocks final : ForwardingFiles {
  int lock(int) override {
    errno = ENOLCK;
    return -1;
  }
};
struct WithoutExchange final : ForwardingFiles {
  using ForwardingFiles::ForwardingFiles;
  int exchange(const Path&, const Path&) override {
    errno = EINVAL;
    return -1;
  }
};

// A file system that cannot sync directories.
struct WithoutSync final : ForwardingFiles {
  int sync(int descriptor) override {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || !S_ISDIR(status.st_mode)) return ForwardingFiles::sync(descriptor);
    errno = error;
    return -1;
  }
  int error = EINVAL;
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
  // A limit on file sizes acts like a full disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  EXPECT_THROW(write_file_atomic(root_ / "a", std::string(5000, 'x')), NoRoom);
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

TEST_F(Files, WritersOfTheSameFileDoNotMeet) {
  const std::string one(3'000'000, '1'), other(2'000'000, '2');
  std::latch both(2);
  const auto write = [&](const std::string& content) {
    both.arrive_and_wait();
    for (int i = 0; i < 100; ++i) {
      replace_file(root_ / "a", content);
      const std::string found = read_file(root_ / "a");
      if (found != one && found != other) return false;
    }
    return true;
  };
  auto beside = std::async(std::launch::async, write, one);
  EXPECT_TRUE(write(other));
  EXPECT_TRUE(beside.get());
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(Files, WhatAKilledWriterLeftIsUsedAgain) {
  write_file_atomic(root_ / "a", "old");
  constexpr int64_t kRename = 3;  // after a creation, a write and a sync
  FaultyFiles killed(kRename, Fault::Kill);
  EXPECT_THROW(write_file_atomic(root_ / "a", "longer than what comes", killed), RunError);
  EXPECT_EQ(names().size(), 2u);
  EXPECT_EQ(read_file(root_ / "a"), "old");
  write_file_atomic(root_ / "a", "new");
  EXPECT_EQ(read_file(root_ / "a"), "new");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(Files, WithoutLocksNoTemporaryIsTakenForALeftOne) {
  WithoutLocks files;
  FaultyFiles killed(3, Fault::Kill);
  EXPECT_THROW(write_file_atomic(root_ / "a", "left", killed), RunError);
  write_file_atomic(root_ / "a", "new", files);
  EXPECT_EQ(read_file(root_ / "a"), "new");
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(Files, OfTheUsersStay) {
  std::ofstream(root_ / "a.tmp") << "mine";
  check_writable(root_ / "a");
  EXPECT_EQ(names(), std::set<std::string>{"a.tmp"});
  write_file_atomic(root_ / "a", "result");
  replace_file(root_ / "a", "result");
  EXPECT_EQ(read_file(root_ / "a.tmp"), "mine");
}

TEST_F(Files, OfAnotherKindAreNotWhatWasMeant) {
  std::ofstream(root_ / "run.toml") << "[model]\n";
  std::ofstream(root_ / "empty");
  std::ofstream(root_ / "trace.json") << "{\"traceEvents\": []}";
  EXPECT_THAT(why_not_writable(root_ / "run.toml", "{\"traceEvents"), ::testing::HasSubstr("another kind of file"));
  EXPECT_EQ(why_not_writable(root_ / "run.toml"), "");
  for (const char* name : {"empty", "trace.json", "new"}) {
    EXPECT_EQ(why_not_writable(root_ / name, "{\"traceEvents"), "") << name;
  }
}

TEST_F(Files, ThatLinksLeadToAreReplaced) {
  fs::create_directory(root_ / "below");
  std::ofstream(root_ / "below/file") << "old";
  fs::create_symlink("below/file", root_ / "link");
  fs::create_symlink(root_ / "link", root_ / "link of a link");
  fs::create_symlink("below/new", root_ / "link to a new one");
  fs::create_symlink("nowhere/new", root_ / "link to nowhere");
  for (const char* link : {"link", "link of a link", "link to a new one"}) {
    for (const auto& write : {write_file_atomic, replace_file}) {
      check_writable(root_ / link);
      write(root_ / link, link, system_files());
      EXPECT_TRUE(fs::is_symlink(root_ / link));
      EXPECT_EQ(read_file(root_ / link), link);
    }
  }
  EXPECT_EQ(read_file(root_ / "below/file"), "link of a link");
  EXPECT_EQ(read_file(root_ / "below/new"), "link to a new one");
  EXPECT_THAT(complaint_of([&] { check_writable(root_ / "link to nowhere"); }),
              ::testing::HasSubstr("link to nowhere: cannot be written: No such file"));
}

TEST_F(Files, APipeIsWrittenTo) {
  const fs::path pipe = root_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  for (const auto& write : {write_file_atomic, replace_file}) {
    check_writable(pipe);
    write(pipe, "result", system_files());
    char found[10] = {};
    EXPECT_EQ(::read(reader, found, sizeof found), 6);
    EXPECT_STREQ(found, "result");
    EXPECT_TRUE(fs::is_fifo(pipe));
  }
  ::close(reader);
  EXPECT_EQ(names(), std::set<std::string>{"pipe"});
}

TEST_F(Files, ADeviceIsWrittenTo) {
  const fs::path null = root_ / "null", full = root_ / "full";  // nodes of this test's own
  if (::mknod(null.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0 ||
      ::mknod(full.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) {
    GTEST_SKIP() << "device nodes cannot be made here";
  }
  if (::access(null.c_str(), W_OK) != 0) GTEST_SKIP() << "devices do not work here";
  for (const auto& write : {write_file_atomic, replace_file}) {
    for (const fs::path& device : {null, full}) check_writable(device);
    write(null, "result", system_files());
    EXPECT_THAT(complaint_of([&] { write(full, "result", system_files()); }),
                ::testing::HasSubstr("full: cannot be written: No space left on device"));
  }
  for (const fs::path& device : {null, full}) EXPECT_TRUE(fs::is_character_file(device));
}

TEST_F(Files, ADirectoryIsNoFileToWrite) {
  fs::create_directory(root_ / "below");
  EXPECT_THAT(complaint_of([&] { check_writable(root_ / "below"); }), ::testing::HasSubstr("Is a directory"));
  EXPECT_THAT(complaint_of([&] { write_file_atomic(root_ / "below", "x"); }), ::testing::HasSubstr("Is a directory"));
  EXPECT_EQ(names(), std::set<std::string>{"below"});
}

TEST_F(Files, NamesMayBeAsLongAsTheSystemAllows) {
  const std::string longest(255, 'n');
  for (const std::string& name : {longest, "\u6f22" + longest.substr(3)}) {
    check_writable(root_ / name);
    write_file_atomic(root_ / name, "old");
    replace_file(root_ / name, "new");
    EXPECT_EQ(read_file(root_ / name), "new");
    fs::remove(root_ / name);
  }
  EXPECT_THAT(complaint_of([&] { check_writable(root_ / (longest + "n")); }),
              ::testing::HasSubstr("n: cannot be written: File name too long"));
  EXPECT_EQ(names(), std::set<std::string>{});
  EXPECT_EQ(name_beside("d/a", ".", ".tmp"), "d/.a.tmp");
  EXPECT_EQ(name_beside("d/" + longest, ".", ".tmp"), "d/." + std::string(128, 'n') + ".tmp");
  std::string wide;
  for (int i = 0; i < 85; ++i) wide += "\u6f22";
  EXPECT_EQ(name_beside(wide, "", ".tmp"), wide.substr(0, 126) + ".tmp");  // no half a character
}

TEST_F(Files, AReplacedFileKeepsItsPermissions) {
  const auto mode = [&] { return fs::status(root_ / "a").permissions(); };
  for (const auto& write : {write_file_atomic, replace_file}) {
    for (const fs::perms kept : {fs::perms(0600), fs::perms(0666), fs::perms(0444)}) {
      std::ofstream(root_ / "a") << "old";
      fs::permissions(root_ / "a", kept);
      write(root_ / "a", "new", system_files());
      EXPECT_EQ(mode(), kept);
      EXPECT_EQ(read_file(root_ / "a"), "new");
      fs::remove(root_ / "a");
    }
  }
}

TEST_F(Files, NothingIsWrittenThatOthersMayReadIfTheReplacedFileIsNotForThem) {
  std::ofstream(root_ / "a") << "old";
  fs::permissions(root_ / "a", fs::perms(0600));
  FaultyFiles failing(1);  // after the creation
  EXPECT_THAT(complaint_of([&] { write_file_atomic(root_ / "a", "new", failing); }),
              ::testing::HasSubstr("a: cannot be given the permissions of the file that it replaces"));
  EXPECT_EQ(read_file(root_ / "a"), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

// A group that shares a directory, with umask 002, can then go on with what one of it has begun.
TEST_F(Files, WhatIsNewHasThePermissionsThatTheUmaskLeaves) {
  const auto mode = [&](const char* name) { return static_cast<int>(fs::status(root_ / name).permissions()); };
  for (const int mask : {022, 002, 077}) {
    const mode_t before = ::umask(static_cast<mode_t>(mask));
    write_new_file(root_ / "new", "");
    write_file_atomic(root_ / "atomic", "");
    make_directories(root_ / "directory");
    { const DirectoryLock lock(root_); }
    ::umask(before);
    for (const char* file : {"new", "atomic", ".lock"}) {
      EXPECT_EQ(mode(file), 0666 & ~mask) << file;
      fs::remove(root_ / file);
    }
    EXPECT_EQ(mode("directory"), 0777 & ~mask);
    fs::remove(root_ / "directory");
  }
}

TEST_F(Files, ADirectoryThatCannotBeSyncedIsNoFault) {
  WithoutSync files;
  sync_directory(root_, files);
  write_file_atomic(root_ / "a", "new", files);
  EXPECT_EQ(read_file(root_ / "a"), "new");
  files.error = EIO;
  EXPECT_THAT(complaint_of([&] { sync_directory(root_, files); }), ::testing::HasSubstr("cannot be synced: Input"));
}

TEST_F(Files, ADirectoryThatIsMissingCannotBeOpened) {
  EXPECT_THAT(complaint_of([&] { sync_directory(root_ / "missing"); }),
              ::testing::HasSubstr("missing: cannot be opened: No such file"));
}

TEST_F(Files, ADirectoryIsReplacedWhereNamesCannotBeExchanged) {
  const auto build = [&](const std::string& content, FileSystem& files) {
    WithoutExchange some(files);
    try {
      DirectoryUnderConstruction directory(root_ / "new", some);
      write_new_file(directory.path() / "a", content, some);
      directory.complete(root_ / "d");
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const auto has = [&](const char* name, const std::string& content) {
    return fs::exists(root_ / name) && read_file(root_ / name / "a") == content;
  };
  int64_t between = 0;
  walk_faults(
      [&] {
        fs::remove_all(root_);
        fs::create_directories(root_);
        ASSERT_TRUE(build("old", sound_));
      },
      [&](FileSystem& files) { return build("new", files); },
      [&](bool succeeded, Fault fault) {
        if (fs::exists(root_ / "d")) {
          EXPECT_TRUE(has("d", "new") || (has("d", "old") && !succeeded));
        } else {
          EXPECT_TRUE(fault != Fault::Error && has("new", "new") && has("new.old", "old"));
          ++between;
        }
        EXPECT_TRUE(build("next", sound_));  // leftovers do not prevent it
        EXPECT_TRUE(has("d", "next"));
        if (fault == Fault::Error) return;
        EXPECT_EQ(names(), std::set<std::string>{"d"});
      });
  EXPECT_GT(between, 0);
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
          EXPECT_TRUE(build("next", sound_));  // leftovers do not prevent it
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
    EXPECT_THROW(DirectoryLock::check_free(directory), InputError);
  }
  EXPECT_NO_THROW(DirectoryLock{directory});
  EXPECT_FALSE(std::filesystem::exists(directory));  // the lock removes the directory that it made and nobody used
  {
    const DirectoryLock lock(directory);
    write_file_atomic(directory / "result", "kept");
  }
  EXPECT_TRUE(std::filesystem::exists(directory / "result"));
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);  // made by somebody else, so it stays
  EXPECT_NO_THROW(DirectoryLock{directory});
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

// Where a run was begun it can only be continued in the same place.
TEST(DirectoryLock, AdviceWhereNothingCanBeWritten) {
  struct ReadOnly final : ForwardingFiles {
    int open(const Path&, int, mode_t) override {
      errno = EROFS;
      return -1;
    }
  } files;
  const testing_support::TemporaryDirectory place;
  const auto directory = place / "run";
  std::filesystem::create_directory(directory);
  const auto complaint = [&] { return complaint_of([&] { DirectoryLock(directory, files); }); };
  EXPECT_EQ(complaint(), directory.string() +
                             ": cannot be written to: Read-only file system; make it writable, or "
                             "choose another --out");
  write_file_atomic(directory / ".lock", "");
  EXPECT_EQ(complaint(), directory.string() + ": cannot be written to: Read-only file system; make it writable");
}

TEST(DirectoryLock, AFullDiskIsNoBadInput) {
  struct Full final : ForwardingFiles {
    int open(const Path& path, int flags, mode_t mode) override {
      if (path.filename() != ".lock") return ForwardingFiles::open(path, flags, mode);
      errno = ENOSPC;
      return -1;
    }
  } files;
  const testing_support::TemporaryDirectory run;
  try {
    const DirectoryLock lock(run.path(), files);
    FAIL() << "there is room";
  } catch (const NoRoom& error) {
    EXPECT_THAT(error.what(), ::testing::EndsWith("No space left on device; make room there, or choose another --out"));
  }
}

// `df` shows free space then, so "No space left on device" would send the user the wrong way.
TEST(NoRoom, AFileSystemWithoutFreeInodesIsToldFromAFullDisk) {
  constexpr int kCannot = 77;
  const testing_support::TemporaryDirectory place;
  const pid_t child = ::fork();
  if (child == 0) {  // with mounts of its own
    const std::string options = "size=16m,nr_inodes=3";
    const bool is_mounted = ::unshare(CLONE_NEWNS) == 0 &&
                            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") == 0 &&
                            ::mount("tmpfs", place.path().c_str(), "tmpfs", 0, options.c_str()) == 0;
    if (!is_mounted) ::_exit(kCannot);
    fs::create_directory(place / "run");
    write_file_atomic(place / "run/last", "");
    const std::vector<std::function<void()>> attempts = {[&] { make_directories(place / "other"); },
                                                         [&] { write_new_file(place / "run/new", "x"); },
                                                         [&] { write_file_atomic(place / "run/last", "x"); },
                                                         [&] { replace_file(place / "run/last", "x"); },
                                                         [&] { DirectoryLock(place / "run"); },
                                                         [&] { PrivateDirectory(place / "run", "x"); }};
    for (const auto& attempt : attempts) {
      try {
        attempt();
        ADD_FAILURE() << "there is an inode";
      } catch (const NoRoom& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr(": its file system has no free inodes (df -i), so it can "));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
    fs::remove(place / "run/last");
    write_new_file(place / "run/new", "x");  // which is all that it took
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kCannot) GTEST_SKIP() << "only root can mount";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Without locks it is up to the user not to run two at once.
TEST(DirectoryLock, NobodyIsRefusedWhereThereAreNoLocks) {
  const testing_support::TemporaryDirectory place;
  WithoutLocks files;
  EXPECT_NO_THROW(DirectoryLock(place / "locked", files));
  EXPECT_NO_THROW(DirectoryUnderConstruction(place / "built", files));
}

TEST(Directories, WhetherOneCanBeMadeIsAskedWithoutMakingIt) {
  const testing_support::TemporaryDirectory root;
  write_file_atomic(root / "file", "");
  std::filesystem::create_symlink("nowhere", root / "link");
  check_can_make(root.path());
  check_can_make(root / "a/b/c");
  EXPECT_FALSE(std::filesystem::exists(root / "a"));
  EXPECT_THROW(check_can_make(root / "file"), InputError);
  EXPECT_THROW(check_can_make(root / "file/a"), InputError);
  EXPECT_THROW(check_can_make(root / "link/a"), InputError);
}

}  // namespace
}  // namespace gyre
