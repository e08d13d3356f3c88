// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/transfer/conformance.h"

#include <numeric>

namespace penstock::transfer {

Identity IdentityOf(Index index) {
  return {.job = JobId(5),
          .iteration = IterationId(6),
          .partition = PartitionId(1),
          .placement = Placement(1),
          .index = index};
}

std::vector<Index> UpTo(Index count) {
  std::vector<Index> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

bool IsBlob(const Element& element, Index index, int64_t bytes) {
  const absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
  if (element.identity() != IdentityOf(index)) return false;
  if (static_cast<int64_t>(values.size()) != bytes) return false;
  int64_t wrong = 0;
  for (int64_t i = 0; i < bytes; ++i) wrong += values[i] != static_cast<uint8_t>(i * 7 + index);
  return wrong == 0;
}

TransportConformance::TransportConformance()
    : transport_(**FindTransport(GetParam().substr(0, GetParam().find_first_of("+*")))),
      sender_pool_(GetParam().ends_with('+') ? special_pool() : Pool::Create()),
      worker_(transport_) {
  EXPECT_TRUE(worker_.listening());
}

DialOptions TransportConformance::Options(Spec spec) const {
  DialOptions options;
  options.hello = {.token = "sesame",
                   .client = ClientId(3),
                   .incarnation = Incarnation(4),
                   .iteration = IterationId(6)};
  options.spec = std::move(spec);
  options.pool = receiver_pool_.get();
  options.timeout = absl::Minutes(1);
  if (GetParam().ends_with('*')) options.tcp.connections = 3;
  return options;
}

std::unique_ptr<ReceiveLink> TransportConformance::Open(const std::shared_ptr<ClientEnd>& client,
                                                        Spec spec) {
  absl::StatusOr<std::unique_ptr<ReceiveLink>> link =
      transport_.Dial(worker_.address(), Options(std::move(spec)), client);
  EXPECT_TRUE(link.ok()) << link.status();
  EXPECT_TRUE(client->AwaitOpen());
  return link.ok() ? *std::move(link) : nullptr;
}

Element TransportConformance::Number(Index index) {
  const int64_t value = index;
  Element element = *MakeElement(*sender_pool_, {Tensor(kInt64, {}, &value)}, Spec(Scalar(kInt64)));
  element.set_identity(IdentityOf(index));
  return element;
}

Element TransportConformance::Blob(Index index, int64_t bytes) {
  std::vector<uint8_t> values(bytes);
  for (int64_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(i * 7 + index);
  const int64_t dims[] = {bytes};
  Element element =
      *MakeElement(*sender_pool_, {Tensor(kUInt8, dims, values.data())}, Spec(BlobSpec()));
  element.set_identity(IdentityOf(index));
  return element;
}

}  // namespace penstock::transfer
