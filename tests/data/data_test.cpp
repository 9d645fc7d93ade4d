// From text to tokens: exact round trips, streaming that changes nothing, damage noticed.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <thread>

#include "data/fixture.h"
#include "gyre/core/descriptor.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/random.h"
#include "gyre/core/utf8.h"
#include "gyre/data/prepare.h"
#include "support/faulty_files.h"

namespace gyre {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
std::string utf8(uint32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
  if (c < 0x10000)
    return {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
            static_cast<char>(0x80 | (c & 63))};
  return {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
          static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
}

// Words, blanks of every kind, emoji, combining marks, control characters.
std::string random_text(uint64_t seed, size_t characters) {
  RandomStream stream(seed, StreamPurpose::Test, 0);
  static const std::vector<std::string> pieces = {"the ",  "and ", "  ",      "\n",     "\t",    "\r\n",
                                                  "\n\n ", "é",    "e\u0301", "😀",      "漢字",  ".",
                                                  "-",     "\x01", "Z",       "\u00a0", "\ufeff"};
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    if (stream.below(4) > 0) {
      text += pieces[stream.below(pieces.size())];
    } else {
      uint32_t c = 1 + static_cast<uint32_t>(stream.below(0x10FFFE));
      if ((c >= 0xD800 && c <= 0xDFFF) || c == 0x2581) c = 'x';  // surrogates; U+2581 is sentencepiece's own blank
      text += utf8(c);
    }
  }
  return text;
}

TEST_F(DataTest, EveryTokenizerGivesTheTextBack) {
  for (const std::string& name : tokenizer_names()) {
    prepare(options({write("text", plain_text(3000))}, name));
    const auto tokenizer = load_tokenizer(directory_ / "tokens");
    EXPECT_EQ(tokenizer->vocabulary_size(), name == "byte" ? 256 : 400);
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const std::string text = random_text(seed, 1 + seed % 60);
      std::vector<int32_t> encoded;
      tokenizer->encode(text, encoded);
      EXPECT_EQ(tokenizer->decode(encoded), text) << name;
      for (const int32_t token : encoded) EXPECT_LT(token, tokenizer->vocabulary_size());
    }
  }
}

TEST_F(DataTest, SplitsEachDocumentByPosition) {
  const std::string first = "abcdefghij", second = "ABCDEFGHIJKLMNOPQRST";
  PrepareOptions o = options({write("one", first), write("two", second)});
  o.val_fraction = 0.25;
  const PrepareResult result = prepare(o);
  EXPECT_EQ(result.documents, 2);
  EXPECT_EQ(result.text_bytes, 30);
  const auto text_of = [&](const TokenSequence& file) {
    std::string text;
    for (const int64_t token : tokens(file)) text += token == 0 ? '|' : static_cast<char>(token);
    return text;
  };
  EXPECT_EQ(text_of(train_of(o.out)), "abcdefghABCDEFGHIJKLMNO");
  EXPECT_EQ(text_of(val_of(o.out)), "ij|PQRST|");
  EXPECT_EQ(open_data(o.out).vocabulary(), 256);
}

TEST_F(DataTest, StreamingDoesNotShow) {
  // Longer than the reader's buffers, with characters of every length across their ends, and no line end to cut at.
  std::string text;
  while (text.size() < (size_t{3} << 20)) text += "aé漢😀";
  PrepareOptions o = options({write("text", text)});
  o.val_fraction = 0;
  prepare(o);
  std::string back;
  for (const int64_t token : tokens(train_of(o.out))) back += static_cast<char>(token);
  back.pop_back();  // the end of the document
  EXPECT_TRUE(back == text);
}

// Writes `text` into a pipe, and closes it.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor, text.data(), text.size());
    if (put <= 0) break;
    text.remove_prefix(static_cast<size_t>(put));
  }
  ::close(descriptor);
}

TEST_F(DataTest, StandardInputGivesTheSameTokensAsAFile) {
  const std::string text = plain_text(20000);
  for (const std::string& tokenizer : tokenizer_names()) {
    PrepareOptions file = options({write("text", text)}, tokenizer);
    prepare(file);
    const std::string expected = read_file(file.out / "train.bin");
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::jthread writer([&] { write_all(ends[1], text); });
    PrepareOptions input = options({"-"}, tokenizer);
    input.out = directory_ / "input";
    input.input_descriptor = ends[0];
    prepare(input);
    ::close(ends[0]);
    EXPECT_TRUE(read_file(input.out / "train.bin") == expected);
    EXPECT_EQ(read_file(input.out / "meta.json"), read_file(file.out / "meta.json"));
  }
}

TEST_F(DataTest, PipesWithNamesGiveTheSameTokensAsFiles) {
  const std::vector<std::string> texts = {plain_text(20000), plain_text(30000)};
  for (const std::string& tokenizer : tokenizer_names()) {
    PrepareOptions files = options({write("a", texts[0]), write("b", texts[1])}, tokenizer);
    prepare(files);
    const std::vector<std::string> pipes = {directory_ / (tokenizer + "-a"), directory_ / (tokenizer + "-b")};
    for (const std::string& pipe : pipes) ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::vector<std::jthread> writers;
    for (size_t i = 0; i < pipes.size(); ++i) {
      writers.emplace_back([&, i] { write_all(::open(pipes[i].c_str(), O_WRONLY | O_CLOEXEC), texts[i]); });
    }
    PrepareOptions input = options(pipes, tokenizer);
    input.out = directory_ / "input";
    prepare(input);
    EXPECT_TRUE(read_file(input.out / "train.bin") == read_file(files.out / "train.bin"));
    EXPECT_EQ(read_file(input.out / "meta.json"), read_file(files.out / "meta.json"));
  }
}

TEST_F(DataTest, StandardInputBeginsWhereItsReaderBeforeStopped) {
  const std::string heading = "a heading\n", text = plain_text(20000);
  for (const std::string& tokenizer : tokenizer_names()) {
    const PrepareOptions file = options({write("text", text)}, tokenizer);
    prepare(file);
    const Descriptor descriptor(write("with heading", heading + text), O_RDONLY);
    ASSERT_EQ(::lseek(descriptor.get(), static_cast<off_t>(heading.size()), SEEK_SET), heading.size());
    PrepareOptions input = options({"-"}, tokenizer);
    input.out = directory_ / "input";
    input.input_descriptor = descriptor.get();
    prepare(input);
    EXPECT_TRUE(read_file(input.out / "train.bin") == read_file(file.out / "train.bin"));
  }
}

TEST_F(DataTest, BadTextAndOptionsGiveOneLine) {
  EXPECT_THAT(complaint(options({directory_ / "missing"})), ::testing::HasSubstr("missing: cannot be opened"));
  EXPECT_THAT(complaint(options({directory_.string()})), ::testing::HasSubstr("directory"));
  EXPECT_THAT(complaint(options({write("empty", "")})), ::testing::HasSubstr("empty: has no text"));
  EXPECT_THAT(complaint(options({write("latin", "caf\xe9 au lait")})),
              ::testing::HasSubstr("latin: not UTF-8 at byte 4"));
  EXPECT_THAT(complaint(options({write("cut", "caf\xc3")})), ::testing::HasSubstr("ends inside a character"));
  EXPECT_THAT(complaint(options({"-", "-"})), ::testing::HasSubstr("twice"));
  PrepareOptions o = options({write("good", "text")});
  o.val_fraction = 1;
  EXPECT_THAT(complaint(o), ::testing::HasSubstr("--val-fraction is 1"));
  o = options({write("lines.jsonl", "{\"text\": \"a\"}\n")});
  o.val_fraction = 1e-19;  // its inverse is more than any number of documents
  EXPECT_THAT(complaint(o), ::testing::HasSubstr("--val-fraction is 1e-19"));
  o.val_fraction = 1e-9;
  o.out = directory_ / "all for training";
  EXPECT_EQ(complaint(o), "accepted");
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  o = options({write("good", "text")}, "bqe");
  EXPECT_THAT(complaint(o), ::testing::HasSubstr("did you mean 'bpe'?"));
  o = options({write("good", "some text that is too short\n")}, "bpe");
  o.vocabulary_size = 5000;
  EXPECT_THAT(complaint(o), ::testing::HasSubstr("--vocab-size is 5000"));
  EXPECT_FALSE(fs::exists(o.out / "meta.json"));
  EXPECT_FALSE(fs::exists(o.out / "train.bin.tmp"));
}

TEST(Utf8, FindsTheFirstWrongByte) {
  const auto where = [](const std::string& text) {
    Utf8Checker checker;
    return checker.check(text).value_or(-1);
  };
  EXPECT_EQ(where("aé漢😀"), -1);
  EXPECT_EQ(where("a\x80"), 1);
  EXPECT_EQ(where("\xc0\x80"), 0);          // overlong
  EXPECT_EQ(where("\xe0\x9f\xbf"), 1);      // overlong
  EXPECT_EQ(where("\xed\xa0\x80"), 1);      // surrogate
  EXPECT_EQ(where("\xf4\x90\x80\x80"), 1);  // past U+10FFFF
  EXPECT_EQ(where("\xf5"), 0);
}

TEST(Utf8, ACutKeepsWholeCharactersAlone) {
  const std::string text = "aé漢😀";  // beginning at bytes 0, 1, 3, 6 of 10
  const std::vector<size_t> expected = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (size_t length = 0; length <= text.size(); ++length) {
    EXPECT_EQ(whole_characters(std::string_view(text).substr(0, length)), expected[length]) << length;
  }
}

TEST_F(DataTest, DamagedTokenFilesAreNamed) {
  PrepareOptions o = options({write("text", plain_text(100))});
  prepare(o);
  const fs::path file = o.out / "train.bin";
  const std::string content = read_file(file);
  for (const size_t size : {size_t{0}, size_t{3}, size_t{1023}, size_t{1024}, content.size() - 2, content.size() - 1}) {
    std::ofstream(file, std::ios::binary) << content.substr(0, size);
    EXPECT_THROW(open_data(o.out), InputError) << size;
  }
  std::ofstream(file, std::ios::binary) << content << "x";
  EXPECT_THROW(open_data(o.out), InputError);
  std::ofstream(file, std::ios::binary) << content;
  EXPECT_NO_THROW(open_data(o.out));
  fs::copy_file(o.out / "val.bin", file, fs::copy_options::overwrite_existing);
  EXPECT_THROW(open_data(o.out), InputError);  // valid, but not what meta.json says
  fs::remove(file);
  EXPECT_THROW(open_data(o.out), InputError);
  EXPECT_THROW(open_data(directory_), InputError);
}

TEST_F(DataTest, ATokenFileThatIsCutShortSaysSoWithBothSizes) {
  const PrepareOptions o = options({write("text", plain_text(100))});
  prepare(o);
  const fs::path file = o.out / "train.bin";
  const auto refused = [&](const std::string& content) -> std::string {
    std::ofstream(file, std::ios::binary) << content;
    try {
      open_data(o.out);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string content = read_file(file);
  for (const size_t size : {size_t{0}, size_t{11}, size_t{12}, size_t{1023}, size_t{1024}, content.size() - 1}) {
    const std::string needed = size < 12 ? "1024" : std::to_string(content.size());
    EXPECT_THAT(refused(content.substr(0, size)),
                AllOf(HasSubstr("truncated"), HasSubstr(fmt::format(" {}", size)), HasSubstr(needed)));
  }
  EXPECT_THAT(refused(plain_text(20)), HasSubstr("not a token file"));
}

TEST_F(DataTest, WideVocabulariesUseFourBytes) {
  TokenFileWriter writer(directory_ / "wide.bin", 70000), other(directory_ / "other.bin", 70000);
  const std::vector<int32_t> written = {1, 65536, 69999, 5};
  writer.append(written);
  writer.move_tail(1, [&](std::span<const int32_t> tail) { other.append(tail); });
  writer.finish();
  other.finish();
  EXPECT_EQ(tokens(TokenFile(directory_ / "wide.bin")), (std::vector<int64_t>{1, 65536, 69999}));
  EXPECT_EQ(tokens(TokenFile(directory_ / "other.bin")), (std::vector<int64_t>{5}));
  std::vector<int64_t> out(3);
  EXPECT_THROW(TokenFile(directory_ / "wide.bin").read(0, out, 69999), RunError);  // outside the vocabulary
}

TEST_F(DataTest, AFileThatIsCutShortInUseIsAnError) {
  PrepareOptions o = options({write("text", plain_text(3000))});
  prepare(o);
  const TokenSequence train = train_of(o.out);
  fs::resize_file(o.out / "train.bin", 1024);
  std::vector<int64_t> out(10);
  EXPECT_THROW(train.read(4000, out, 256), RunError);
}

// Replaces `was` by `is` in meta.json.
void change_meta(const fs::path& directory, const std::string& was, const std::string& is) {
  std::string meta = read_file(directory / "meta.json");
  ASSERT_NE(meta.find(was), std::string::npos) << was;
  meta.replace(meta.find(was), was.size(), is);
  std::ofstream(directory / "meta.json", std::ios::binary) << meta;
}

std::string complaint_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(DataTest, EveryFileMustBeTheOneOfItsMeta) {
  const auto text = write("text", plain_text(2000)), other_text = write("other", plain_text(2001));
  for (const std::string& tokenizer : tokenizer_names()) {
    PrepareOptions o = options({text}, tokenizer), other = options({other_text}, tokenizer);
    other.out = directory_ / "other-tokens";
    prepare(o);
    prepare(other);
    EXPECT_NO_THROW(open_data(o.out).train());
    // Change one byte of the tokens, not their number.
    for (const char* file : {"train.bin", "val.bin"}) {
      const std::string content = read_file(o.out / file);
      std::string changed = content;
      changed[changed.size() - 2] = static_cast<char>(changed[changed.size() - 2] ^ 1);
      std::ofstream(o.out / file, std::ios::binary) << changed;
      const Dataset dataset = open_data(o.out);
      EXPECT_THAT(complaint_of([&] {
                    dataset.train();
                    dataset.val();
                  }),
                  ::testing::AllOf(::testing::HasSubstr(file), ::testing::HasSubstr("checksum")));
      std::ofstream(o.out / file, std::ios::binary) << content;
    }
    // A token outside the vocabulary is found even if no batch has it.
    const std::string vocabulary = fmt::format("\"vocabulary\": {}", open_data(o.out).vocabulary());
    change_meta(o.out, vocabulary, "\"vocabulary\": 100");
    EXPECT_THAT(complaint_of([&] { open_data(o.out).train(); }), ::testing::HasSubstr("outside the vocabulary"));
    change_meta(o.out, "\"vocabulary\": 100", vocabulary);
    if (tokenizer != "bpe") continue;
    // A different tokenizer with as many pieces.
    EXPECT_NO_THROW(load_tokenizer(o.out));
    fs::copy_file(other.out / "tokenizer.model", o.out / "tokenizer.model", fs::copy_options::overwrite_existing);
    EXPECT_THAT(complaint_of([&] { load_tokenizer(o.out); }), ::testing::HasSubstr("tokenizer.model"));
    EXPECT_THAT(complaint_of([&] { copy_tokenizer(o.out, directory_); }), ::testing::HasSubstr("tokenizer.model"));
  }
}

TEST_F(DataTest, PreparedTextIsReplacedOnRequestAlone) {
  PrepareOptions o = options({write("text", plain_text(500))});
  o.overwrite = false;
  prepare(o);
  const std::string before = read_file(o.out / "meta.json");
  o.val_fraction = 0.3;
  EXPECT_THAT(complaint(o), ::testing::HasSubstr("--overwrite"));
  EXPECT_EQ(read_file(o.out / "meta.json"), before);
  o.overwrite = true;
  prepare(o);
  EXPECT_NE(read_file(o.out / "meta.json"), before);
  // Files that gyre prepare did not make are never removed.
  std::ofstream(o.out / "notes.txt") << "mine";
  EXPECT_THAT(complaint(o), ::testing::HasSubstr("notes.txt"));
  EXPECT_EQ(read_file(o.out / "notes.txt"), "mine");
  // An empty directory is accepted; a file, a dangling link and an empty path are not.
  o.overwrite = false;
  o.out = directory_ / "empty";
  fs::create_directories(o.out);
  prepare(o);
  EXPECT_NO_THROW(open_data(o.out).train());
  for (const fs::path& out :
       {directory_ / "text", directory_ / "text" / "below", directory_ / "dangling", fs::path()}) {
    fs::remove(directory_ / "dangling");
    fs::create_symlink(directory_ / "nowhere", directory_ / "dangling");
    o.out = out;
    EXPECT_NE(complaint(o), "accepted") << out;
  }
}

TEST_F(DataTest, PreparingThatGoesWrongAnywhereLeavesTheOldOrTheNew) {
  const std::string old_text = write("old", plain_text(300)), new_text = write("new", plain_text(400));
  const auto run = [&](const std::string& text, bool overwrite, FileSystem& files) {
    PrepareOptions o = options({text});
    o.overwrite = overwrite;
    o.files = &files;
    try {
      prepare(o);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const fs::path out = directory_ / "tokens";
  FaultyFiles sound;
  ASSERT_TRUE(run(new_text, true, sound));
  const std::string fresh = read_file(out / "meta.json");
  for (const bool replaces : {false, true}) {
    std::string old;
    const int64_t faults = walk_faults(
        [&] {
          fs::remove_all(out);
          fs::remove_all(directory_ / "tokens.preparing");
          if (!replaces) return;
          ASSERT_TRUE(run(old_text, true, sound));
          old = read_file(out / "meta.json");
        },
        [&](FileSystem& files) { return run(new_text, true, files); },
        [&](bool succeeded, Fault) {
          if (fs::exists(out)) {
            const Dataset dataset = open_data(out);
            EXPECT_NO_THROW(dataset.train());
            EXPECT_NO_THROW(dataset.val());
            const std::string meta = read_file(out / "meta.json");
            EXPECT_TRUE(meta == fresh || (replaces && meta == old && !succeeded));
          } else {
            EXPECT_FALSE(succeeded || replaces);
          }
          EXPECT_TRUE(run(new_text, true, sound));  // nothing prevents the next attempt
          EXPECT_FALSE(fs::exists(directory_ / "tokens.preparing"));
        });
    EXPECT_GE(faults, 5 * 12);
  }
}

}  // namespace
}  // namespace gyre
