// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the files of its corpus, without libFuzzer: each file once, and cut at
// 16 places.
//
//   fuzz_corpus_tests NAME FOLDER…
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

// The targets: each is LLVMFuzzerTestOneInput under the name of its program (cmake/Tests.cmake).
#define FUZZER(name) extern "C" int name(const uint8_t* data, size_t size);
#include "fuzzers.inc"
#undef FUZZER

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(const uint8_t*, size_t)> targets = {
#define FUZZER(name) {#name, &name},
#include "fuzzers.inc"
#undef FUZZER
  };
  const auto target = argc > 1 ? targets.find(argv[1]) : targets.end();
  if (target == targets.end()) {
    std::fprintf(stderr, "%s: no fuzz target has the name %s\n", argv[0],
                 argc > 1 ? argv[1] : "(none)");
    return 2;
  }
  int files = 0;
  for (int i = 2; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      for (int part = 0; part <= 16; ++part) {
        // A copy of its own size, so that a sanitizer sees a read past the end.
        std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + bytes.size() * part / 16);
        target->second(cut.data(), cut.size());
      }
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files == 0 ? 1 : 0;  // an empty corpus tests nothing
}
