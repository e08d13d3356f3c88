// SPDX-License-Identifier: Apache-2.0
#include "dataplane/python/leaves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace penstock::python_host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Collects the outputs by leaf.
class Given final : public ElementOutputs {
 public:
  absl::StatusOr<absl::Span<std::byte>> Output(size_t i, absl::Span<const int64_t> dims) override {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    values[i].resize(count);
    return absl::MakeSpan(reinterpret_cast<std::byte*>(values[i].data()), count * sizeof(int32_t));
  }
  absl::Status OutputStrings(size_t i, absl::Span<const int64_t>,
                             absl::Span<const std::string> given) override {
    strings[i].assign(given.begin(), given.end());
    return absl::OkStatus();
  }
  std::map<size_t, std::vector<int32_t>> values;
  std::map<size_t, std::vector<std::string>> strings;
};

const std::vector<TensorSpec> kSpecs = {Dense(kInt32, {kUnknownDim}), Dense(kString, {kUnknownDim}),
                                        Scalar(kInt32)};

// Returns words, because leaves are at multiples of 8 bytes.
std::vector<uint64_t> Written() {
  const std::vector<int32_t> values = {1, 2, 3};
  const std::vector<uint64_t> offsets = {5, 7, 7, 10};  // this tensor is part of a larger one
  const int32_t scalar = -4;
  const std::vector<int64_t> three = {3};
  const std::vector<Tensor> leaves = {Tensor(kInt32, three, values.data()),
                                      Tensor(kString, three, offsets.data(), "-----abcde"),
                                      Tensor(kInt32, {}, &scalar)};
  std::vector<uint64_t> memory((BytesOfLeaves(leaves) + 7) / 8);
  WriteLeaves(leaves, absl::MakeSpan(reinterpret_cast<std::byte*>(memory.data()),
                                     memory.size() * sizeof(uint64_t)));
  return memory;
}

absl::Status Read(const std::vector<uint64_t>& memory, size_t bytes, Given& given) {
  return ReadLeaves(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(memory.data()), bytes),
                    kSpecs, given);
}

TEST(Leaves, AreReadAsTheyWereWritten) {
  const std::vector<uint64_t> memory = Written();
  Given given;
  ASSERT_TRUE(Read(memory, memory.size() * 8, given).ok());
  EXPECT_THAT(given.values[0], ElementsAre(1, 2, 3));
  EXPECT_THAT(given.strings[1], ElementsAre("ab", "", "cde"));
  EXPECT_THAT(given.values[2], ElementsAre(-4));
}

TEST(Leaves, ThatAreCutShortAreAnError) {
  const std::vector<uint64_t> memory = Written();
  Given whole;
  size_t bytes = memory.size() * 8;
  while (Read(memory, bytes, whole).ok()) --bytes;
  EXPECT_GT(bytes, memory.size() * 8 - 16);  // the first bytes cut off are padding
  for (; bytes > 0; --bytes) {
    Given given;
    EXPECT_EQ(Read(memory, bytes, given).code(), absl::StatusCode::kInternal) << bytes;
  }
}

// Changes any word of the head or of the strings' offsets to any of these values. The result is an
// error or another leaf inside the memory; the address sanitizer checks that.
TEST(Leaves, ThatAreWrongAreNeverReadFromElsewhere) {
  const std::vector<uint64_t> memory = Written();
  for (size_t word = 0; word < memory.size(); ++word) {
    for (const uint64_t wrong : {uint64_t{0}, uint64_t{1}, uint64_t{63}, memory.size() * 8,
                                 uint64_t{1} << 33, uint64_t{1} << 63, ~uint64_t{0}}) {
      std::vector<uint64_t> changed = memory;
      changed[word] = wrong;
      Given given;
      const absl::Status status = Read(changed, changed.size() * 8, given);
      EXPECT_TRUE(status.ok() || absl::IsInternal(status)) << status;
    }
  }
}

TEST(Leaves, OfAnotherDTypeAreNamed) {
  std::vector<uint64_t> memory = Written();
  memory[1] = static_cast<uint64_t>(kFloat32);
  Given given;
  EXPECT_THAT(std::string(Read(memory, memory.size() * 8, given).message()),
              HasSubstr("output 0 of a Python process: the dtype is number 12, not int32"));
}

}  // namespace
}  // namespace penstock::python_host
