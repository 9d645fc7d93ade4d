// Texts as users have them: packed, many documents per file, lines of JSON. The tokens do not depend on the form of the
// texts or the number of threads.
#include "gyre/data/prepare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "data/fixture.h"
#include "gyre/core/files.h"
#include "gyre/data/text_reader.h"
#include "gyre/data/token_shards.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

class PrepareTest : public DataTest {
 protected:
  // Tokens of the byte tokenizer as text, with "|" for the end of a document.
  std::string text_of(const TokenSequence& file) {
    std::string text;
    for (const int64_t token : tokens(file)) text += token == 0 ? '|' : static_cast<char>(token);
    return text;
  }
  std::string train_text(const PrepareOptions& options) {
    prepare(options);
    return text_of(train_of(options.out));
  }
  // The contents of all files that prepare makes.
  std::string all(const PrepareOptions& options) {
    prepare(options);
    std::string all;
    for (const char* file : {kTrainFile, kValFile, kMetaFile}) all += read_file(options.out / file);
    return all;
  }
};

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  const size_t size = stream.total_out;
  deflateEnd(&stream);
  return packed.substr(0, size);
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

// Random documents of every length, some longer than a chunk.
std::vector<std::string> documents(size_t count, size_t longest = 300) {
  RandomStream stream(7, StreamPurpose::Test, 2);
  const std::string text = plain_text(longest);
  std::vector<std::string> documents;
  for (size_t i = 0; i < count; ++i) {
    documents.push_back(fmt::format("{}:{}.", i, text.substr(0, stream.below(text.size() + 1))));
  }
  return documents;
}

std::string joined(const std::vector<std::string>& documents, const std::string& separator) {
  std::string all;
  for (const std::string& document : documents) all += (all.empty() ? "" : separator) + document;
  return all;
}

std::string json_lines(const std::vector<std::string>& documents) {
  std::string lines;
  for (const std::string& document : documents) lines += nlohmann::json{{"id", 1}, {"text", document}}.dump() + "\n";
  return lines;
}

TEST_F(PrepareTest, ADirectoryMayHaveTheLongestName) {
  PrepareOptions o = options({write("text", "abc")});
  for (const size_t length : {246, 255}) {
    o.out = directory_ / std::string(length, 'n');
    for (int time = 0; time < 2; ++time) EXPECT_EQ(train_text(o), "abc|");
  }
}

TEST_F(PrepareTest, PackedTextGivesTheSameTokens) {
  for (const std::string& tokenizer : tokenizer_names()) {
    const std::string text = plain_text(tokenizer == "byte" ? 500'000 : 30'000);
    const size_t half = text.size() / 2;
    const std::string expected = all(options({write("text", text)}, tokenizer));
    EXPECT_TRUE(all(options({write("text.gz", gzip(text))}, tokenizer)) == expected);
    EXPECT_TRUE(all(options({write("text.zst", zstd(text))}, tokenizer)) == expected);
    // Several members or frames, as cat joins them, under any name.
    EXPECT_TRUE(all(options({write("joined", gzip(text.substr(0, half)) + gzip(text.substr(half)))}, tokenizer)) ==
                expected);
    EXPECT_TRUE(all(options({write("joined", zstd(text.substr(0, half)) + zstd(text.substr(half)))}, tokenizer)) ==
                expected);
    // A frame without text, of two bytes, as pzstd puts it first.
    const std::string skipped("\x50\x2a\x4d\x18\x02\0\0\0ab", 10);
    EXPECT_TRUE(all(options({write("skipped", skipped + zstd(text))}, tokenizer)) == expected);
    EXPECT_TRUE(all(options({write("padded", gzip(text) + std::string(512, '\0'))}, tokenizer)) == expected);
  }
}

TEST_F(PrepareTest, DamagedPackedTextIsRefused) {
  const std::string text = plain_text(30'000);
  for (const auto& [name, packed] : {std::pair{"text.gz", gzip(text)}, std::pair{"text.zst", zstd(text)}}) {
    for (const size_t size : {packed.size() / 2, packed.size() - 1, packed.size() - 6, size_t{20}, size_t{5}}) {
      EXPECT_THAT(complaint(options({write(name, packed.substr(0, size))})), HasSubstr("is cut short")) << size;
    }
    std::string damaged = packed;
    for (size_t i = packed.size() / 2; i < packed.size() / 2 + 40; ++i) damaged[i] = static_cast<char>(~damaged[i]);
    EXPECT_THAT(complaint(options({write(name, damaged)})), HasSubstr("is damaged"));
    EXPECT_NE(complaint(options({write(name, packed + "something")})), "accepted");
  }
  EXPECT_FALSE(fs::exists(directory_ / "tokens"));
  EXPECT_FALSE(fs::exists(directory_ / "tokens.preparing"));
}

TEST_F(PrepareTest, TheNumberOfThreadsDoesNotShow) {
  for (const std::string& tokenizer : tokenizer_names()) {
    const size_t size = tokenizer == "byte" ? 10 : 2;
    PrepareOptions o =
        options({write("text", plain_text(150'000 * size)), write("lines.jsonl", json_lines(documents(500 * size)))},
                tokenizer);
    o.threads = 1;
    const std::string expected = all(o);
    for (const int threads : {3, 0}) {
      o.threads = threads;
      EXPECT_TRUE(all(o) == expected) << threads;
    }
  }
}

TEST_F(PrepareTest, DocumentsAreTheSameWhateverTheyLieIn) {
  std::vector<std::string> many = documents(3000);
  many[5] = plain_text(400'000) + ".";  // longer than a chunk
  PrepareOptions o = options({write("lines.jsonl", json_lines(many))});
  const std::string expected = all(o);
  EXPECT_EQ(prepare(o).documents, 3000);
  for (const std::string separator : {"<|endoftext|>", "\n\n\n", "\n---\n", "%"}) {
    o.texts = {write("separated", joined(many, separator))};
    o.separator = separator;
    EXPECT_TRUE(all(o) == expected) << separator;
    o.texts = {write("separated", joined(many, separator) + separator)};  // a separator after the last document too
    EXPECT_TRUE(all(o) == expected) << separator;
  }
  o.separator = "";
  o.texts = {write("lines.json.gz", gzip(json_lines(many)))};
  EXPECT_TRUE(all(o) == expected);
  o.texts = {write("lines", json_lines(many))};
  o.format = "jsonl";
  EXPECT_TRUE(all(o) == expected);
}

TEST_F(PrepareTest, ThereMayBeMoreFilesThanAProcessMayHaveOpen) {
  constexpr int kFiles = 100;
  std::vector<std::string> texts;
  for (int i = 0; i < kFiles; ++i) texts.push_back(write(fmt::format("text-{}", i), fmt::format("{} ", i)));
  rlimit whole{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &whole), 0);
  const int lowest = ::dup(0);  // that is free
  ::close(lowest);
  const rlimit few{static_cast<rlim_t>(lowest) + kFiles / 2, whole.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::string why;
  try {
    EXPECT_EQ(prepare(options(texts)).documents, kFiles);
  } catch (const Error& error) {
    why = error.what();
  }
  ::setrlimit(RLIMIT_NOFILE, &whole);
  EXPECT_EQ(why, "");
}

TEST_F(PrepareTest, SeparatorsAreFoundAcrossTheEndsOfChunks) {
  // A separator at every place around the end of the first chunk; no line end moves the cut.
  const std::string separator = "<|endoftext|>";
  for (size_t at = (1 << 20) - 16; at <= (1 << 20) + 2; ++at) {
    PrepareOptions o = options({write("text", std::string(at, 'a') + separator + "b")});
    o.separator = separator;
    o.val_fraction = 0;
    EXPECT_TRUE(train_text(o) == std::string(at, 'a') + "|b|") << at;
  }
}

TEST_F(PrepareTest, EmptyDocumentsAreLeftOut) {
  PrepareOptions o = options({write("text", "##a####b##")});
  o.separator = "##";
  o.val_fraction = 0;
  EXPECT_EQ(train_text(o), "a|b|");
  o.separator = "";
  o.texts = {write("lines.jsonl", "{\"text\": \"a\"}\n\n{\"text\": \"\"}\r\n  \n{\"text\": \"b\"}")};
  EXPECT_EQ(train_text(o), "a|b|");
}

TEST_F(PrepareTest, WholeDocumentsAreKeptForValidationWhereThereAreMany) {
  const std::vector<std::string> many = documents(1000);
  PrepareOptions o = options({write("lines.jsonl", json_lines(many))});
  std::set<std::string> drawn;
  for (const int64_t seed : {1, 1, 2}) {
    o.seed = seed;
    prepare(o);
    const std::string train = text_of(train_of(o.out)), val = text_of(val_of(o.out));
    EXPECT_EQ(std::count(val.begin(), val.end(), '|'), 100);
    for (const std::string& document : many) {
      const bool in_train = ("|" + train).find("|" + document + "|") != std::string::npos;
      const bool in_val = ("|" + val).find("|" + document + "|") != std::string::npos;
      ASSERT_NE(in_train, in_val) << document.substr(0, 20);
    }
    drawn.insert(val);
  }
  EXPECT_EQ(drawn.size(), 2u);  // depends on the seed
  // Files are documents too.
  std::vector<std::string> files;
  for (int i = 0; i < 20; ++i) files.push_back(write(fmt::format("file{}", i), fmt::format("text {}", i)));
  prepare(o = options(files));
  const std::string val = text_of(val_of(o.out));
  EXPECT_EQ(std::count(val.begin(), val.end(), '|'), 2);
  // With too few documents, the end of all goes to validation, and no document as a whole.
  prepare(o = options({write("few.jsonl", json_lines({"abcdefghij", "0123456789"}))}));
  EXPECT_EQ(text_of(train_of(o.out)) + "/" + text_of(val_of(o.out)), "abcdefghij|012345678/9|");
  o.val_fraction = 0;
  prepare(o);
  EXPECT_EQ(val_of(o.out).size(), 0);
}

// By position the end of every document moves to validation, which may begin in an earlier file.
TEST_F(PrepareTest, ManyTokensGoToSeveralFiles) {
  const auto one = write("one", plain_text(2000)), two = write("two", plain_text(600));
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += fmt::format("{{\"text\": \"{}\"}}\n", std::string(200, 'a' + i % 26));
  const auto many = write("many.jsonl", lines);
  const auto files_of = [&](const PrepareOptions& o, const char* first) {
    return shards_of(first, DatasetMeta::load(o.out).checksums);
  };
  for (const auto& texts : {std::vector{one, two}, std::vector{two, one}, std::vector{many}}) {
    for (const double fraction : {0.0, 0.6}) {
      PrepareOptions o = options(texts);
      o.val_fraction = fraction;
      prepare(o);
      const auto train = tokens(train_of(o.out)), val = tokens(tokens_of(o.out / kValFile));
      EXPECT_EQ(files_of(o, kTrainFile), std::vector<std::string>{kTrainFile});
      for (const int64_t most : {1000, 1024, 4000}) {
        o.shard_tokens = most;
        prepare(o);
        EXPECT_EQ(tokens(train_of(o.out)), train) << most;
        size_t before = 0;
        for (const std::string& name : files_of(o, kValFile)) {
          const auto part = tokens(tokens_of(o.out / name));
          ASSERT_LE(before + part.size(), val.size());
          EXPECT_TRUE(std::equal(part.begin(), part.end(), val.begin() + static_cast<std::ptrdiff_t>(before))) << name;
          before += part.size();
        }
        EXPECT_EQ(before, val.size());
        const auto files = static_cast<int64_t>(files_of(o, kTrainFile).size());
        EXPECT_EQ(files, (std::ssize(train) + most - 1) / most) << most;
        const size_t in_directory = static_cast<size_t>(std::distance(fs::directory_iterator(o.out), {}));
        EXPECT_EQ(in_directory, files_of(o, kTrainFile).size() + files_of(o, kValFile).size() + 1);  // and meta.json
      }
    }
  }
}

TEST_F(PrepareTest, AFileOfSeveralThatIsMissingOrCutShortIsNamed) {
  PrepareOptions o = options({write("text", plain_text(9000))});
  o.shard_tokens = 1000;
  prepare(o);
  const fs::path shard = o.out / "train_000003.bin";
  const std::string content = read_file(shard), meta = read_file(o.out / kMetaFile);
  const auto refused = [&] {
    try {
      open_data(o.out).train();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(), "accepted");
  fs::resize_file(shard, content.size() - 1);
  EXPECT_THAT(refused(), AllOf(HasSubstr("train_000003.bin"), HasSubstr("truncated")));
  fs::remove(shard);
  EXPECT_THAT(refused(), HasSubstr("train_000003.bin"));
  write("tokens/train_000003.bin", content.substr(0, content.size() - 2) + std::string("z\0", 2));
  EXPECT_THAT(refused(), AllOf(HasSubstr("train_000003.bin"), HasSubstr("checksum")));
  // Were it left out of meta.json, too few tokens would be there.
  write("tokens/train_000003.bin", content);
  auto json = nlohmann::json::parse(meta);
  json["checksums"].erase("train_000003.bin");
  write("tokens/meta.json", json.dump());
  EXPECT_THAT(refused(), AllOf(HasSubstr("train.bin, with the files after it: has"), HasSubstr("meta.json says")));
}

TEST_F(PrepareTest, BadLinesAreNamed) {
  const auto refused = [&](const std::string& lines) { return complaint(options({write("lines.jsonl", lines)})); };
  const std::string good = "{\"text\": \"a\"}\n";
  EXPECT_THAT(refused(good + good + "no\n"), HasSubstr("lines.jsonl:3: the line is no JSON"));
  EXPECT_THAT(refused(good + "{\"text\": \"cut"), HasSubstr("lines.jsonl:2: the line is no JSON"));
  EXPECT_THAT(refused("[{\"text\": \"a\"},\n"), HasSubstr("lines.jsonl:1: the line is no JSON object; write a list"));
  EXPECT_THAT(refused(good + "[1]"), HasSubstr("lines.jsonl:2: the line is no JSON object"));
  // What json.dumps of Python writes beyond JSON.
  for (const std::string half : {"\\ud83d", "\\ud83d\\ud83d", "\\uDE00"}) {
    EXPECT_THAT(refused(good + "{\"text\": \"a" + half + "\"}\n"),
                HasSubstr("lines.jsonl:2: the line is no JSON: it has half of a character"))
        << half;
  }
  EXPECT_THAT(refused(good + "{\"text\": \"x\", \"score\": 1e400}\n"),
              HasSubstr("lines.jsonl:2: the line is no JSON that gyre reads: a number is too large"));
  for (const std::string number : {"NaN", "Infinity", "-Infinity"}) {
    EXPECT_THAT(refused(good + "{\"score\": " + number + ", \"text\": \"a\"}\n"),
                HasSubstr("lines.jsonl:2: the line is no JSON: NaN and Infinity are no numbers there"))
        << number;
  }
  EXPECT_THAT(refused(good + "{\"content\": \"a\"}"),
              HasSubstr("lines.jsonl:2: the object has no 'text' (it has: content)"));
  EXPECT_THAT(refused(good + "{\"text\": [\"a\"]}"), HasSubstr("lines.jsonl:2: 'text' is no string"));
  EXPECT_THAT(refused(good + "{\"text\": \"\xff\"}"), HasSubstr("lines.jsonl:2: the line is not UTF-8"));
  EXPECT_THAT(refused("\n\n"), HasSubstr("lines.jsonl: has no text"));
  // Far down in a text, where several threads split chunks.
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += good;
  EXPECT_THAT(refused(many + "no\n" + many + "nor this\n"), HasSubstr("lines.jsonl:200001: the line is no JSON"));

  PrepareOptions o = options({write("text", "text")});
  o.field = "content";
  EXPECT_THAT(complaint(o), HasSubstr("--field is for jsonl"));
  o = options({write("lines.jsonl", "{\"content\": \"a\"}")});
  o.field = "content";
  EXPECT_EQ(complaint(o), "accepted");
  o.separator = "x";
  EXPECT_THAT(complaint(o), HasSubstr("--separator is for plain text"));
  o = options({write("text", "text")});
  o.format = "json";
  EXPECT_THAT(complaint(o), HasSubstr("did you mean 'jsonl'?"));
  o = options({write("text", "text")});
  o.threads = -1;
  EXPECT_THAT(complaint(o), HasSubstr("--threads is -1"));
}

TEST_F(PrepareTest, ASampleOfShortDocumentsTeachesAVocabulary) {
  if (!has_sentencepiece()) GTEST_SKIP() << "built without sentencepiece";
  // More text than the sample takes, in documents of a line each.
  const PrepareOptions o = options({write("lines.jsonl", json_lines(documents(20'000, 100)))}, "bpe");
  EXPECT_EQ(prepare(o).vocabulary, 400);
}

TEST_F(PrepareTest, ProgressGoesThroughTheBytesOfAllFiles) {
  const std::string a = plain_text(400'000), b = gzip(a);
  PrepareOptions o = options({write("a", a), write("b.gz", b)});
  const auto total = static_cast<int64_t>(a.size() + b.size());
  int64_t last = 0;
  o.progress = [&](const PrepareProgress& now) {
    EXPECT_GE(now.done, last);
    EXPECT_EQ(now.total, total);
    last = now.done;
  };
  prepare(o);
  EXPECT_EQ(last, total);
}

TEST_F(PrepareTest, ChunksAreCutWhereNoTokenIsLikelyToGoOn) {
  // Text is not cut at line ends before blanks: "
  //
  // " and "
  //   " are tokens of many vocabularies.
  class Text final : public ByteSource {
   public:
    explicit Text(std::string text) : text_(std::move(text)) {}
    size_t read(std::span<char> out) override {
      const size_t count = text_.copy(out.data(), out.size());
      text_.erase(0, count);
      return count;
    }
    int64_t taken() const override { return 0; }

   private:
    std::string text_;
  };
  for (const std::string& blank : {std::string("  "), std::string("\t"), std::string("\u3000")}) {
    std::string text;
    while (text.size() < (1 << 20)) text += "a line" + std::string(text.size() < 900'000 ? "\nb" : "\n" + blank);
    Text bytes(text + "the end");
    const TextLayout layout;
    TextReader reader(bytes, layout);
    const auto chunk = reader.next();
    ASSERT_TRUE(chunk);
    EXPECT_LT(chunk->text.size(), 900'100u);
    EXPECT_TRUE(chunk->text.ends_with("line\n"));
  }
}

}  // namespace
}  // namespace gyre
