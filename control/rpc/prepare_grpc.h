// SPDX-License-Identifier: Apache-2.0
// Only for .cc files of gRPC clients and servers.
#pragma once

namespace penstock::control {

// Works around two faults, one in gRPC and one in Abseil, on which gRPC is built. Call it before a
// channel or a server is made. Any thread may call it.
//
// - From the first call on, it keeps the threads on which gRPC runs callbacks. Otherwise gRPC joins
//   these threads when the last channel or server that uses them is destroyed. If the end of a
//   stream destroys the channel, the channel is destroyed on one of these threads, and joining the
//   threads then causes a double free (grpc 1.51, CallbackAlternativeCQ::Unref).
// - It turns off Abseil's detection of deadlocks, which is on if Abseil was built without NDEBUG,
//   as Debian's package is. The detection notes each of gRPC's mutexes at its first lock. gRPC
//   frees mutexes without calling their destructors, and the notes on these mutexes are kept, so
//   that processes grow with each connection and call. The detection also makes all locks go
//   through one spinlock.
void PrepareGrpc();

}  // namespace penstock::control
