#!/usr/bin/env python3
"""Hugging Face's tokenizers beside bench/tokenizers_bench, on one thread.

Usage: beside.py DOCUMENTS TOKENIZER_JSON... (documents: a JSON list of texts). Prints its version when it is ready. Then,
for every number of a tokenizer on standard input, encodes all documents and prints the seconds of processor time and the
number of tokens.
"""
import json
import sys
import time

try:
    import tokenizers
except ImportError:
    sys.exit(0)  # prints no version, by which tokenizers_bench notices


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        documents = json.load(file)
    loaded = [tokenizers.Tokenizer.from_file(path) for path in sys.argv[2:]]
    # encode_batch_fast does not track the tokens' positions in the text.
    fast = hasattr(tokenizers.Tokenizer, "encode_batch_fast")
    print(f"tokenizers {tokenizers.__version__}", flush=True)
    for line in sys.stdin:
        tokenizer = loaded[int(line)]
        encode = tokenizer.encode_batch_fast if fast else tokenizer.encode_batch
        started = time.process_time()
        encoded = encode(documents, add_special_tokens=False)
        seconds = time.process_time() - started
        print(seconds, sum(len(one.ids) for one in encoded), flush=True)


main()
