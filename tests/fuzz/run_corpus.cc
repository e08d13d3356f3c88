// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the files of its kept corpus, where there is no
// libFuzzer: each once, and each cut at 16 places.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      for (int part = 0; part <= 16; ++part) {
        // A copy of its own size, so that a sanitizer sees a read past the end.
        std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + bytes.size() * part / 16);
        LLVMFuzzerTestOneInput(cut.data(), cut.size());
      }
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files == 0 ? 1 : 0;  // an empty corpus tests nothing
}
