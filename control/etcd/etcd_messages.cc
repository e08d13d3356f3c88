// SPDX-License-Identifier: Apache-2.0
#include "control/etcd/etcd_messages.h"

#include <utility>

namespace penstock::control {
namespace {

void Write(const EtcdCompare& from, etcdserverpb::Compare* to) {
  to->set_result(etcdserverpb::Compare::EQUAL);
  to->set_key(from.key);
  switch (from.number) {
    case EtcdCompare::Number::kVersion:
      to->set_target(etcdserverpb::Compare::VERSION);
      return to->set_version(from.equals);
    case EtcdCompare::Number::kCreateRevision:
      to->set_target(etcdserverpb::Compare::CREATE);
      return to->set_create_revision(from.equals);
    case EtcdCompare::Number::kModRevision:
      to->set_target(etcdserverpb::Compare::MOD);
      return to->set_mod_revision(from.equals);
  }
}

struct OperationWriter {
  etcdserverpb::RequestOp* to;

  void operator()(const EtcdGet& get) const { ToEtcd(get, to->mutable_request_range()); }
  void operator()(const EtcdPut& put) const {
    etcdserverpb::PutRequest& request = *to->mutable_request_put();
    request.set_key(put.key);
    request.set_value(put.value);
    request.set_lease(put.lease);
  }
  void operator()(const EtcdDelete& deletion) const {
    etcdserverpb::DeleteRangeRequest& request = *to->mutable_request_delete_range();
    request.set_key(deletion.key);
    request.set_range_end(deletion.end);
  }
};

}  // namespace

void ToEtcd(const EtcdGet& from, etcdserverpb::RangeRequest* to) {
  to->set_key(from.key);
  to->set_range_end(from.end);
  to->set_limit(from.limit);
  to->set_keys_only(from.keys_only);
}

etcdserverpb::TxnRequest ToEtcd(const EtcdTxn& from) {
  etcdserverpb::TxnRequest to;
  for (const EtcdCompare& compare : from.compares) Write(compare, to.add_compare());
  for (const EtcdOperation& operation : from.then) {
    std::visit(OperationWriter{to.add_success()}, operation);
  }
  for (const EtcdOperation& operation : from.otherwise) {
    std::visit(OperationWriter{to.add_failure()}, operation);
  }
  return to;
}

EtcdTxnAnswer FromEtcd(etcdserverpb::TxnResponse& from) {
  EtcdTxnAnswer to{.succeeded = from.succeeded(), .revision = from.header().revision()};
  for (etcdserverpb::ResponseOp& operation : *from.mutable_responses()) {
    if (operation.has_response_range()) AppendKeys(*operation.mutable_response_range(), to.keys);
  }
  return to;
}

void AppendKeys(etcdserverpb::RangeResponse& from, std::vector<EtcdKey>& to) {
  for (etcdserverpb::KeyValue& key : *from.mutable_kvs()) {
    to.push_back({.key = std::move(*key.mutable_key()),
                  .value = std::move(*key.mutable_value()),
                  .create_revision = key.create_revision(),
                  .mod_revision = key.mod_revision(),
                  .lease = key.lease()});
  }
}

}  // namespace penstock::control
