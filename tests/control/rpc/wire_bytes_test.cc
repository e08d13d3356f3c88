// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/wire_bytes.h"

#include "gtest/gtest.h"

namespace penstock::control {
namespace {

grpc::ByteBuffer Encode(const wire::GetDatasetAnswer& answer,
                        std::shared_ptr<const std::string> definition) {
  const std::string_view bytes = *definition;
  return ToBytes(answer, wire::GetDatasetAnswer::kDefinitionFieldNumber,
                 {std::move(definition), bytes});
}

wire::GetDatasetAnswer AnswerWithoutDefinition() {
  wire::GetDatasetAnswer answer;
  answer.set_dataset_id("images");
  answer.mutable_summary()->set_fingerprint(7);
  return answer;
}

TEST(WireBytes, AMessageWithASharedFieldIsReadLikeAnyOther) {
  for (const size_t size : {0, 1, 127, 128, 1 << 20, 5 << 20}) {
    wire::GetDatasetAnswer whole = AnswerWithoutDefinition();
    whole.set_definition(std::string(size, 'x'));
    grpc::ByteBuffer bytes =
        Encode(AnswerWithoutDefinition(), std::make_shared<const std::string>(whole.definition()));
    EXPECT_EQ(bytes.Length(), whole.ByteSizeLong());
    wire::GetDatasetAnswer read;
    ASSERT_TRUE(Parse(&bytes, &read).ok()) << size;
    EXPECT_EQ(read.SerializeAsString(), whole.SerializeAsString()) << size;
  }
}

TEST(WireBytes, MessagesWithOneSharedFieldHoldOneCopy) {
  const auto definition = std::make_shared<const std::string>(1 << 20, 'x');
  std::vector<grpc::ByteBuffer> answers;
  for (int i = 0; i < 100; ++i) {
    answers.push_back(Encode(AnswerWithoutDefinition(), definition));
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(answers.back().Dump(&slices).ok());
    EXPECT_EQ(static_cast<const void*>(slices.back().begin()), definition->data());
    EXPECT_EQ(slices.back().size(), definition->size());
  }
  EXPECT_EQ(definition.use_count(), 101);
  answers.clear();
  EXPECT_EQ(definition.use_count(), 1);
}

}  // namespace
}  // namespace penstock::control
