#include "gyre/data/prepare.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <system_error>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/data/dataset.h"
#include "gyre/data/text_reader.h"
#include "gyre/data/token_file.h"
#include "gyre/data/tokenizer.h"
#include "gyre/data/utf8.h"

namespace gyre {
namespace {

// How much text bpe is trained on: in proportion to the vocabulary, which is what decides how much is needed. Four
// times as much made 1% fewer tokens of 73 MB of novels (8192 pieces), and the trainer's memory grows with it.
int64_t sample_bytes(int64_t vocabulary) {
  return std::clamp<int64_t>(vocabulary * 128, 1 << 20, 16 << 20);
}
constexpr size_t kLongestLine = 4096;  // longer lines are cut for the sample

// A text that can be read more than once. Standard input is spooled into a file in `directory` if need be.
class Text {
 public:
  Text(const std::string& path, const PrepareOptions& options, const std::filesystem::path& directory, bool twice)
      : name_(path == "-" ? "standard input" : path), files_(*options.files), stop_(options.stop) {
    if (path != "-") {
      open(path);
    } else if (!twice) {
      descriptor_ = ::dup(options.input_descriptor);
    } else {
      spooled_ = directory / "input.txt";
      spool(options.input_descriptor);
      open(spooled_);
    }
  }
  ~Text() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!spooled_.empty()) files_.remove(spooled_);
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  int64_t read(const std::function<void(std::string_view)>& piece) {
    ::lseek(descriptor_, 0, SEEK_SET);  // a pipe cannot, and is read once
    return read_text(descriptor_, name_, [&](std::string_view text) {
      heed_stop();
      piece(text);
    });
  }
  const std::string& name() const { return name_; }

 private:
  void open(const std::filesystem::path& path) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw InputError(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) {
      throw InputError(fmt::format("{}: is a directory; give text files", path.string()));
    }
  }
  void heed_stop() const {
    if (stop_.stop_requested()) throw RunError("stopped; nothing was kept");
  }
  void spool(int from) {
    OutputFile copy(spooled_, O_WRONLY | O_CREAT | O_TRUNC, files_, 0600);
    std::string buffer(size_t{1} << 18, '\0');
    for (;;) {
      const ssize_t got = ::read(from, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", name_, std::strerror(errno)));
      if (got == 0) return;
      heed_stop();
      copy.write(buffer.data(), static_cast<size_t>(got));
    }
  }

  std::string name_;
  FileSystem& files_;
  std::stop_token stop_;
  std::filesystem::path spooled_;
  int descriptor_ = -1;
};

// Where `out` is, without links and a slash at its end.
std::filesystem::path resolved(const std::filesystem::path& out) {
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical(out, error);
  if (out.empty() || error) {
    throw InputError(fmt::format("--out '{}' is no place for files: {}", out.string(),
                                 error ? error.message() : "it is empty; give a directory to make"));
  }
  if (!std::filesystem::exists(path, error) && std::filesystem::is_symlink(out, error)) {
    throw InputError(fmt::format("{}: is a link to nowhere; is a disk not mounted?", out.string()));
  }
  return path.has_filename() ? path : path.parent_path();
}

// The directory that is to be replaced must hold nothing but prepared text.
void check_place(const std::filesystem::path& out, bool overwrite) {
  static const std::set<std::string> kOurs = {kTrainFile, kValFile, kMetaFile, kTokenizerFile};
  std::error_code error;
  if (!std::filesystem::exists(out, error)) return;
  if (!std::filesystem::is_directory(out, error)) {
    throw InputError(fmt::format("{}: is not a directory; give --out another name", out.string()));
  }
  if (std::filesystem::equivalent(out, std::filesystem::current_path(), error)) {
    throw InputError(fmt::format("{}: is the current directory; give --out a directory of its own", out.string()));
  }
  bool has_data = false;
  for (const auto& entry : std::filesystem::directory_iterator(out, error)) {
    const std::string name = entry.path().filename().string();
    if (kOurs.count(name) == 0) {
      throw InputError(fmt::format("{}: has '{}', which gyre prepare did not make; give --out a directory of its own",
                                   out.string(), name));
    }
    has_data = true;
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", out.string(), error.message()));
  if (has_data && !overwrite) {
    throw InputError(
        fmt::format("{}: has prepared text already, which runs may need; choose another --out, or replace it with "
                    "--overwrite",
                    out.string()));
  }
}

void check(const PrepareOptions& options) {
  const auto names = tokenizer_names();
  if (std::find(names.begin(), names.end(), options.tokenizer) == names.end() && options.tokenizer != "bpe") {
    throw InputError(
        fmt::format("--tokenizer {} is unknown{}", options.tokenizer, suggestion(options.tokenizer, names)));
  }
  if (!(options.val_fraction >= 0 && options.val_fraction < 1)) {
    throw InputError(fmt::format("--val-fraction is {}; give 0 or more and less than 1", options.val_fraction));
  }
  if (options.tokenizer == "bpe" &&
      (options.vocabulary_size < kSmallestVocabulary || options.vocabulary_size > 1'000'000)) {
    throw InputError(fmt::format("--vocab-size is {}; give 300 to 1000000", options.vocabulary_size));
  }
  if (std::count(options.texts.begin(), options.texts.end(), "-") > 1) {
    throw InputError("- (standard input) is given twice; it can be read once");
  }
  if (options.texts.empty()) throw InputError("no text is given");
}

// Lines spread evenly over all texts: every stride-th megabyte's share, the stride chosen so that the sample is
// bounded.
class Sampler {
 public:
  Sampler(int64_t total_bytes, int64_t wanted)
      : share_(std::min(1.0, static_cast<double>(wanted) / static_cast<double>(total_bytes))) {}

  void add(std::string_view piece) {
    const auto wanted = static_cast<size_t>(share_ * static_cast<double>(piece.size()));
    piece = piece.substr(0, share_ < 1 ? std::max<size_t>(wanted, 1) : piece.size());
    while (!piece.empty()) {
      size_t end = std::min(piece.find('\n'), piece.size());
      if (end > kLongestLine) end = whole_characters(piece.substr(0, kLongestLine));
      if (end > 0) lines_.emplace_back(piece.substr(0, end));
      piece.remove_prefix(std::min(piece.size(), end < piece.size() && piece[end] == '\n' ? end + 1 : end));
    }
    // A piece cut by its share may end inside a character: its last line goes.
    if (share_ < 1 && !lines_.empty()) lines_.pop_back();
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  double share_;
  std::vector<std::string> lines_;
};

// The tokenizer, and its model in `directory` if it has one.
std::unique_ptr<Tokenizer> make_tokenizer(const PrepareOptions& options, const std::filesystem::path& directory,
                                          std::vector<std::unique_ptr<Text>>& texts, DataIdentity& checksums) {
  if (options.tokenizer == "byte") return make_byte_tokenizer();
  int64_t total = 0;
  for (const auto& text : texts) total += text->read([](std::string_view) {});
  if (total == 0) throw InputError("the text is empty; there is nothing to learn a vocabulary from");
  Sampler sampler(total, sample_bytes(options.vocabulary_size));
  for (const auto& text : texts) text->read([&](std::string_view piece) { sampler.add(piece); });
  const std::string model = train_bpe_tokenizer(sampler.lines(), options.vocabulary_size);
  FileWriter writer(directory / kTokenizerFile, *options.files);
  writer.write(model);
  writer.close();
  checksums[kTokenizerFile] = file_checksum(directory / kTokenizerFile);
  return parse_bpe_tokenizer(model, directory / kTokenizerFile);
}

// Appends one document to the splits.
void add_document(Text& text, const Tokenizer& tokenizer, double val_fraction, TokenFileWriter& train,
                  TokenFileWriter& val, PrepareResult& result) {
  const int64_t before = train.size();
  std::vector<int32_t> tokens;
  const int64_t bytes = text.read([&](std::string_view piece) {
    tokens.clear();
    tokenizer.encode(piece, tokens);
    train.append(tokens);
  });
  if (bytes == 0) throw InputError(fmt::format("{}: is empty", text.name()));
  const auto tail = static_cast<int64_t>(std::floor(static_cast<double>(train.size() - before) * val_fraction));
  if (tail > 0) train.move_tail(tail, val);
  const int32_t end = tokenizer.end_of_document();
  (tail > 0 ? val : train).append({&end, 1});
  result.text_bytes += bytes;
  ++result.documents;
}

}  // namespace

PrepareResult prepare(const PrepareOptions& options) {
  check(options);
  const auto out = resolved(options.out);
  check_place(out, options.overwrite);
  DirectoryUnderConstruction directory(out.string() + ".preparing", *options.files);

  std::vector<std::unique_ptr<Text>> texts;
  for (const std::string& path : options.texts) {
    texts.push_back(std::make_unique<Text>(path, options, directory.path(), options.tokenizer == "bpe"));
  }
  DatasetMeta meta;
  const auto tokenizer = make_tokenizer(options, directory.path(), texts, meta.checksums);

  PrepareResult result;
  result.vocabulary = tokenizer->vocabulary_size();
  TokenFileWriter train(directory.path() / kTrainFile, result.vocabulary, *options.files);
  TokenFileWriter val(directory.path() / kValFile, result.vocabulary, *options.files);
  for (const auto& text : texts) add_document(*text, *tokenizer, options.val_fraction, train, val, result);
  texts.clear();
  result.train_tokens = train.size();
  result.val_tokens = val.size();

  meta.tokenizer = options.tokenizer;
  meta.vocabulary = result.vocabulary;
  meta.train_tokens = result.train_tokens;
  meta.val_tokens = result.val_tokens;
  meta.documents = result.documents;
  meta.text_bytes = result.text_bytes;
  meta.checksums[kTrainFile] = train.finish();
  meta.checksums[kValFile] = val.finish();
  FileWriter writer(directory.path() / kMetaFile, *options.files);
  writer.write(meta.to_json());
  writer.close();
  directory.complete(out);
  return result;
}

}  // namespace gyre
