// SPDX-License-Identifier: Apache-2.0
// Converts messages to their wire form and back.
#include "control/proto/convert.h"
#include "control/proto/messages_proto.h"
#include "control/proto/reading_proto.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/worker_messages.h"
#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

template <class Wire, class Message>
void ExpectRoundTrip(const Message& message) {
  Wire wire;
  ToWire(message, &wire);
  Wire parsed;
  ASSERT_TRUE(parsed.ParseFromString(wire.SerializeAsString()));
  absl::StatusOr<Message> back = FromWire(parsed);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == message) << wire.DebugString();
}

const PlacedPartition kOf{IterationId(1), PartitionId(2), Placement(3), 4};

IndexSet SomeIndices() {
  IndexSet set = IndexSet::Of(3, 7);
  set.Add(9);
  set.Add(1'000'000'000'000);
  return set;
}

TEST(Wire, EachClientMessageArrivesAsItWasSent) {
  const PartitionReport report{PartitionId(2), Placement(3), SomeIndices(), IndexSet::Of(7, 8)};
  const std::vector<PartitionIndices> indices = {{PartitionId(2), SomeIndices()}};
  for (const ClientUp& up : std::vector<ClientUp>{
           ClientHello{JobId(1), 2, ClientId(3), Incarnation(4), std::nullopt},
           ClientHello{JobId(1), 2, ClientId(3), Incarnation(4), std::vector<PartitionIndices>()},
           ClientHello{JobId(1),
                       2,
                       ClientId(3),
                       Incarnation(4),
                       indices,
                       Incarnation(5),
                       6,
                       7,
                       "t",
                       {{8, 9, Term(10)}, 11},
                       {12, 13},
                       "0.9.0",
                       {{14, indices}, {15, {}}}},
           ClientHeartbeat{5, {}},
           ClientHeartbeat{6,
                           {{WorkerId(7),
                             "tcp",
                             "tcp: as asked for",
                             true,
                             1,
                             2,
                             3,
                             4,
                             absl::Seconds(5),
                             absl::Seconds(6),
                             true,
                             {7, 8, 9, 10}},
                            {}},
                           true,
                           {7, absl::Seconds(8), absl::Seconds(9)},
                           {{10, {PartitionId(11), 12}}, {0, {PartitionId(1), 0}}}},
           ClientHeartbeat{.counter = 7,
           .links = {{.worker = WorkerId(7), .elements = 2}},
           .only_changed_links = true,
           .gone_links = {WorkerId(8), WorkerId(9)}},
           FenceAnswer{report}, Report{{report, report}},
           Report{.partitions = {}, .rounds = std::nullopt, .complete = true},
           Commit{7, {{0, indices}, {1, {}}}}, Leave{indices},
           ReceiveLimit{{{PartitionId(1), 7}, {PartitionId(2), 0}}}}) {
    ExpectRoundTrip<wire::ClientUp>(up);
  }
  for (const ClientDown& down : std::vector<ClientDown>{
           Welcome{IterationId(1),
                   {7, 8, Term(2)},
                   std::string("t\0k", 3),
                   9,
                   {.mode = ShardingPolicy::kDynamic, .ack_mode = AckMode::kOnCommit},
                   absl::Seconds(1),
                   absl::Seconds(60),
                   {{PartitionId(1), Placement(2)}},
                   17,
                   {SomeIndices()}},
           Welcome{.iteration = IterationId(1), .version = 4, .partial = true},
           ClientHeartbeatAnswer{5},
           Membership{
               3,
               {{PartitionId(1), Placement(2), WorkerId(3)}, {PartitionId(2), Placement(1), {}, 9}},
               {{WorkerId(3), "host:1", {{"grpc", "host:2", "c"}}, {"tag"}, Incarnation(4)}}},
           Membership{4, {{PartitionId(1), Placement(2), {}}}, {}, true},
           Membership{.version = 5, .max_bytes_in_flight = 6, .since = 4, .num_partitions = 7},
           Fence{PartitionId(1), Placement(2)}, ReportAtOnce{}, Committed{4}, End{2, 7}, Left{},
           SessionError{absl::DataLossError("what")},
           SessionError{absl::NotFoundError("what"), Life{1, 2, Term(3)}}, ConsumersLost{},
           ConsumersLost{{{3, absl::Milliseconds(4), true, "why", true}, {5, absl::Seconds(6)}}}}) {
    ExpectRoundTrip<wire::ClientDown>(down);
  }
}

TEST(Wire, EachWorkerMessageArrivesAsItWasSent) {
  for (const WorkerUp& up : std::vector<WorkerUp>{
           WorkerHello{WorkerId(1),
                       {1, 2},
                       "host:1",
                       {{"grpc", "host:2", "c"}},
                       {"tag"},
                       4,
                       {kOf},
                       Incarnation(6),
                       {{8, 9, Term(10)}, 11}},
           WorkerHeartbeat{
               5,
               {{"1000", {{{"Map#1", 1, 2, absl::Seconds(3), absl::Seconds(4), 5, 6}, {}}}}, {}},
               {{IterationId(7), 8, absl::Seconds(9), 10}, {}}},
           SplitRequest{kOf, 1, 2, 3, 4}, Bookmark{kOf, 7, "position", {{0, 1, 2}}}, Ended{kOf, 10},
           PartitionFailed{kOf, absl::NotFoundError("file")}, Drain{}, WorkerLeave{}}) {
    ExpectRoundTrip<wire::WorkerUp>(up);
  }
  for (const WorkerDown& down : std::vector<WorkerDown>{
           WorkerWelcome{{7, 8, Term(2)}, absl::Milliseconds(1500)},
           WorkerHeartbeatAnswer{5, absl::Seconds(3)},
           Assign{kOf,
                  JobId(1),
                  "token",
                  "1000",
                  5,
                  {.mode = ShardingPolicy::kFileOrData, .num_consumers = 3},
                  {ShardingPolicy::kData, 4, 3},
                  2,
                  99,
                  SomeIndices(),
                  4,
                  "position",
                  {{0, 1, 2, {3, 4}, true}},
                  {{ClientId(5), Incarnation(6), 2}},
                  6,
                  std::nullopt,
                  0,
                  protocol::Positions{8, 3, 17},
                  11},
           AddReader{kOf, {ClientId(5), Incarnation(6)}}, RemoveReader{kOf, ClientId(5)},
           Unassign{kOf}, Splits{kOf, {0, 1, 2, {3}, false}}, Drained{},
           WorkerRefused{absl::FailedPreconditionError("why")},
           WorkerRefused{absl::NotFoundError("why"), Life{1, 2, Term(3)}}}) {
    ExpectRoundTrip<wire::WorkerDown>(down);
  }
}

using google::protobuf::FieldDescriptor;

void Fill(google::protobuf::Message& message);

// Sets the field to 2, true or "a", or appends that.
void Fill(google::protobuf::Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& to = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(many ? *to.AddMessage(&message, &field) : *to.MutableMessage(&message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return many ? to.AddString(&message, &field, "a") : to.SetString(&message, &field, "a");
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? to.AddInt64(&message, &field, 2) : to.SetInt64(&message, &field, 2);
    case FieldDescriptor::CPPTYPE_UINT64:  // sets of indices have pairs of numbers
      return many ? (to.AddUInt64(&message, &field, 2), to.AddUInt64(&message, &field, 2))
                  : to.SetUInt64(&message, &field, 2);
    case FieldDescriptor::CPPTYPE_INT32:
      return to.SetInt32(&message, &field, 2);
    case FieldDescriptor::CPPTYPE_UINT32:  // of an enumeration: all have a value 1
      return to.SetUInt32(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_BOOL:
      return to.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return to.SetDouble(&message, &field, 2);
    default:
      FAIL() << field.full_name() << " has a type that no message had so far";
  }
}

void Fill(google::protobuf::Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    Fill(message, *message.GetDescriptor()->field(i));
  }
  if (auto* terms = dynamic_cast<wire::JobTerms*>(&message)) terms->clear_group_size();
  if (auto* shard = dynamic_cast<wire::ShardOf*>(&message)) shard->set_index(1);
}

template <class Wire>
void ExpectAllFieldsKept(const Wire& wire) {
  const auto value = FromWire(wire);
  ASSERT_TRUE(value.ok()) << value.status() << "\n" << wire.DebugString();
  Wire back;
  ToWire(*value, &back);
  EXPECT_EQ(back.DebugString(), wire.DebugString());
}

template <class Wire>
void ExpectAllFieldsKept() {
  Wire wire;
  if (wire.GetDescriptor()->oneof_decl_count() == 0) {
    Fill(wire);
    return ExpectAllFieldsKept(wire);
  }
  const google::protobuf::OneofDescriptor& oneof = *wire.GetDescriptor()->oneof_decl(0);
  for (int i = 0; i < oneof.field_count(); ++i) {
    Fill(wire, *oneof.field(i));
    ExpectAllFieldsKept(wire);
  }
}

TEST(Wire, NoFieldIsLost) {
  ExpectAllFieldsKept<wire::VersionRange>();
  ExpectAllFieldsKept<wire::RegisterDatasetRequest>();
  ExpectAllFieldsKept<wire::RegisterDatasetAnswer>();
  ExpectAllFieldsKept<wire::GetDatasetAnswer>();
  ExpectAllFieldsKept<wire::JobAnswer>();
  ExpectAllFieldsKept<wire::DispatcherStatus>();
  ExpectAllFieldsKept<wire::ClientUp>();
  ExpectAllFieldsKept<wire::ClientDown>();
  ExpectAllFieldsKept<wire::WorkerUp>();
  ExpectAllFieldsKept<wire::WorkerDown>();
  ExpectAllFieldsKept<wire::GetReadingRequest>();
  ExpectAllFieldsKept<wire::SavedRepetition>();
  ExpectAllFieldsKept<wire::RestoreJobRequest>();
}

TEST(Wire, AGroupOfConsumersArrivesAsItWasSent) {
  wire::JobTerms wire;
  Encoder().Put(JobTerms{.num_consumers = 6, .group_size = 3}, &wire);
  EXPECT_EQ(Decode<JobTerms>(wire)->group_size, 3);
}

TEST(Wire, AJobWithoutAShareHasTheUsualOne) {
  wire::JobTerms wire;
  EXPECT_EQ(Decode<JobTerms>(wire)->share, JobShare());
  Encoder().Put(JobTerms(), &wire);
  EXPECT_EQ(wire.weight(), 0);  // so that an earlier release reads it
  EXPECT_EQ(wire.priority(), 0);
}

TEST(Wire, WrongNumbersFromOutsideAreRefused) {
  wire::ClientUp empty;
  EXPECT_EQ(FromWire(empty).status().code(), absl::StatusCode::kInvalidArgument);
  wire::IndexSet half;
  half.add_gaps_and_lengths(1);
  EXPECT_FALSE(Decode<IndexSet>(half).ok());
  wire::IndexSet huge;
  huge.add_gaps_and_lengths(UINT64_MAX);
  huge.add_gaps_and_lengths(2);
  EXPECT_FALSE(Decode<IndexSet>(huge).ok());
  // Products with numbers of consumers or partitions must not overflow.
  wire::IndexSet far;
  far.add_gaps_and_lengths(0);
  far.add_gaps_and_lengths(uint64_t{1} << 62);
  EXPECT_EQ(Decode<IndexSet>(far).status().code(), absl::StatusCode::kInvalidArgument);
  wire::IndexSet nothing;
  nothing.add_gaps_and_lengths(1);
  nothing.add_gaps_and_lengths(0);
  EXPECT_FALSE(Decode<IndexSet>(nothing).ok());
  wire::ClientUp nobody;
  nobody.mutable_hello()->set_job(1);
  EXPECT_FALSE(FromWire(nobody).ok());
  wire::Positions positions;
  positions.set_partitions(8);
  EXPECT_FALSE(Decode<protocol::Positions>(positions).ok());  // without a number of consumers
  positions.set_consumers(3);
  EXPECT_TRUE(Decode<protocol::Positions>(positions).ok());
  positions.set_first(-1);
  EXPECT_FALSE(Decode<protocol::Positions>(positions).ok());
  wire::JobTerms terms;
  terms.set_mode(77);
  EXPECT_EQ(Decode<JobTerms>(terms).status().code(), absl::StatusCode::kInternal);
  terms.set_mode(0);
  terms.set_weight(1001);
  EXPECT_EQ(Decode<JobTerms>(terms).status().code(), absl::StatusCode::kInvalidArgument);
  terms.set_weight(0);
  terms.set_remainder_policy(3);
  EXPECT_EQ(Decode<JobTerms>(terms).status().code(), absl::StatusCode::kInvalidArgument);
  terms.set_remainder_policy(0);
  terms.set_num_consumers(1'000'000'000'000);
  EXPECT_THAT(Decode<JobTerms>(terms).status().message(),
              ::testing::HasSubstr("the maximum is 65536"));
  terms.set_num_consumers(1 << 16);
  EXPECT_TRUE(Decode<JobTerms>(terms).ok());
  wire::WorkerUp end;
  end.mutable_ended()->set_elements(int64_t{1} << 62);
  EXPECT_EQ(FromWire(end).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::control
