// SPDX-License-Identifier: Apache-2.0
// For .cc files of gRPC clients and servers only.
#pragma once

namespace penstock::control {

// Works around two faults, one in gRPC and one in Abseil, which gRPC is built on. Call it before a
// channel or a server is made. Any thread.
//
// - From the first call on, it keeps the threads on which gRPC runs callbacks. Otherwise gRPC joins
//   them when the last channel or server that uses them is destroyed, even on one of these threads,
//   as happens when the end of a stream destroys it. That is a double free (grpc 1.51,
//   CallbackAlternativeCQ::Unref).
// - It turns off Abseil's detection of deadlocks, which is on where Abseil was built without
//   NDEBUG, as Debian's is. The detection notes each of gRPC's mutexes at its first lock, and keeps
//   the notes of mutexes that gRPC frees without their destructors, so that processes grow with
//   each connection and call. It also makes all locks pass one spinlock.
void PrepareGrpc();

}  // namespace penstock::control
