// SPDX-License-Identifier: Apache-2.0
// Converts the types of etcd_client.h to and from the messages of etcd.proto. Includes Protobuf.
#pragma once

#include <vector>

#include "control/etcd/etcd.pb.h"
#include "control/etcd/etcd_client.h"

namespace penstock::control {

void ToEtcd(const EtcdGet& from, etcdserverpb::RangeRequest* to);
etcdserverpb::TxnRequest ToEtcd(const EtcdTxn& from);
// Moves the found keys out of `from`.
EtcdTxnAnswer FromEtcd(etcdserverpb::TxnResponse& from);
// Moves the found keys out of `from`, to the end of `to`.
void AppendKeys(etcdserverpb::RangeResponse& from, std::vector<EtcdKey>& to);

}  // namespace penstock::control
