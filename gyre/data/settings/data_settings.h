// The table [data], and the tables [[data.source]] of a mixture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/core/options.h"

namespace gyre {

struct DataSource {
  std::string name;  // used in overrides and checksums; by default the source's number
  std::string tokens;
  double weight = 1;
  std::string val_tokens;

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit("tokens", self.tokens, Range{}, "as [data] tokens, of this source");
    visit("weight", self.weight, between(1e-9, 1e9),
          "its sequences in the mixture, in proportion to the others' weights");
    visit("val_tokens", self.val_tokens, Range{}, "as [data] val_tokens, of this source");
  }
  bool operator==(const DataSource&) const = default;
};

struct DataSettings {
  std::string tokens;
  std::string val_tokens;
  double val_fraction = 0.01;
  int64_t vocabulary = 0;
  std::string tokenizer;
  std::string order = "random";
  std::vector<DataSource> source;

  bool is_given() const { return !tokens.empty() || !source.empty(); }

  template <typename Self, typename Visit>
  static void each_option(Self& self, Visit&& visit) {
    visit(
        "tokens", self.tokens, Range{},
        "directory made by gyre prepare, or token files of llm.c, nanoGPT or Megatron: a directory, a file, a pattern "
        "such as data/*_train_*.bin, or Megatron's prefix (docs/data.md). A relative path is kept as an absolute one. "
        "Or give several as [[data.source]]");
    visit("val_tokens", self.val_tokens, Range{},
          "token files to validate on, instead of those that belong to tokens; of a mixture, instead of all sources'");
    visit("val_fraction", self.val_fraction, between(0, 0.5),
          "share at the end of token files that have no others to validate on; what gyre prepare made has its own");
    visit(
        "vocabulary", self.vocabulary, between(0, 1 << 30),
        "tokens are below it; 0: what the data says, which llm.c's, nanoGPT's and Megatron's do not (GPT-2's: 50257)");
    visit("tokenizer", self.tokenizer, Range{},
          "of token files of other programs: what gyre prepare --tokenizer takes, a file or a directory. It says the "
          "vocabulary, and gyre generate writes with it");
    visit("order", self.order, one_of({"random", "epochs"}),
          "random: sequences begin anywhere, drawn each by itself; epochs: the data is cut into sequences, and all of "
          "them are gone through in an order drawn anew each time");
  }
  bool operator==(const DataSettings&) const = default;
};

}  // namespace gyre
