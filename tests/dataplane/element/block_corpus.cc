// SPDX-License-Identifier: Apache-2.0
// Writes the initial blocks and frames of block_fuzz: block_corpus tests/fuzz/corpus/block_fuzz
#include <cstdio>
#include <fstream>
#include <string>

#include "dataplane/element/block.h"
#include "dataplane/element/error_block.h"
#include "dataplane/element/extension.h"
#include "dataplane/element/frame.h"
#include "dataplane/memory/pool.h"
#include "tests/dataplane/element/sample.h"

namespace penstock {
namespace {

std::string Bytes(absl::Span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string EndBlock() {
  const BlockLayout layout = BlockLayout::Of({}, ExtensionBytes(5)).value();
  const Loan loan = DefaultPool().Lend(layout.bytes()).value();
  BlockWriter writer(layout, loan.bytes(), SampleSpec());
  MutablePrefixOf(writer.block()).flags = kFlagEnd;
  ExtensionWriter(writer.extensions()).Add(ExtensionType::kBookmark, 5);
  return Bytes(loan.bytes().subspan(0, layout.bytes()));
}

std::string Frame(int elements) {
  const absl::Status error = absl::DataLossError("x");
  const Loan loan = DefaultPool().Lend(64 << 10).value();
  FrameWriter writer(loan.bytes());
  for (int i = 0; i < elements; ++i) writer.Append(SampleElement().block());
  WriteErrorBlock(writer.Open(ErrorBlockBytes(error)), {.index = 1}, error);
  return Bytes(writer.Seal());
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;  // NOLINT
  if (argc != 2) {
    std::fprintf(stderr, "block_corpus FOLDER\n");
    return 2;
  }
  const Element error =
      MakeErrorBlock(DefaultPool(), {.index = 3}, absl::NotFoundError("a.tfrecord")).value();
  const std::pair<const char*, std::string> files[] = {
      {"sample", Bytes(SampleElement().block())},
      {"error", Bytes(error.block())},
      {"end", EndBlock()},
      {"frame0", Frame(0)},
      {"frame2", Frame(2)},
  };
  for (const auto& [name, bytes] : files) {
    std::ofstream out(std::string(argv[1]) + "/" + name, std::ios::binary);
    out << bytes;
    if (!out.flush()) {
      std::fprintf(stderr, "cannot write %s/%s\n", argv[1], name);
      return 1;
    }
  }
}
