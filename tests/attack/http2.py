# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frame by frame, as a client that may break every rule. RFC 9113; headers by RFC 7541 without compression."""
import socket
import struct
import time

from ports import PREFACE

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM = ACK = 1
END_HEADERS = 4
LARGEST_FRAME = 16384  # bytes that every peer accepts
FIRST_WINDOW = 65535  # bytes
WIDE = 1 << 30  # bytes; the window that we announce


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """Returns a frame. `length` is the length to announce, if it is not the payload's."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def integer(value, bits):
    """Returns an integer of HPACK with a prefix of `bits` bits."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((value,))
    found, value = [most], value - most
    while value >= 128:
        found.append(value % 128 + 128)
        value //= 128
    return bytes((*found, value))


def field(name, value):
    name, value = name.encode(), value if isinstance(value, bytes) else value.encode()
    return b"\x00" + integer(len(name), 7) + name + integer(len(value), 7) + value


def call_headers(path, more=()):
    """Returns the header block of a call of gRPC."""
    fields = ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"), ("te", "trailers"),
              ("content-type", "application/grpc"), *more)
    return b"".join(field(name, value) for name, value in fields)


def message(body, length=None, compressed=0):
    """Returns a message of gRPC. `length` is the length to announce, if it is not the body's."""
    return struct.pack(">BI", compressed, len(body) if length is None else length) + body


class Connection:
    """A connection that obeys flow control and answers pings and settings. Streams are 1, 3, 5, …

    With a `token` each call says that it comes from the token's principal."""

    def __init__(self, peer, token=None):
        self.peer, self.unread = peer, b""
        self.principal = (("authorization", f"Bearer {token}"),) if token is not None else ()
        self.next_stream = 1
        self.window = FIRST_WINDOW  # bytes that we may still send on the connection
        self.first_window = FIRST_WINDOW
        self.windows = {}  # as `window`, by stream
        self.answers = {}  # bytes of DATA, by stream
        self.ended = set()  # streams
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        settings = struct.pack(">HI", 4, WIDE - 1)
        peer.sendall(PREFACE + frame(SETTINGS, payload=settings) + frame(WINDOW, payload=struct.pack(">I", WIDE)))

    def open(self, path, more=()):
        """Begins a call; returns its stream."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.windows[stream], self.answers[stream] = self.first_window, b""
        self.peer.sendall(frame(HEADERS, END_HEADERS, stream, call_headers(path, (*self.principal, *more))))
        return stream

    def send(self, stream, body, end=False, until=None):
        """Sends the body as DATA. False if the peer ended the stream or, before `until`, granted no window for the rest."""
        view = memoryview(body)
        until = until or time.monotonic() + 10
        while len(view) or end:
            room = min(self.window, self.windows[stream], LARGEST_FRAME, len(view))
            if room <= 0 < len(view):
                if stream in self.ended or not self.read_until(until, once=True):
                    return False
                continue
            last = end and room == len(view)
            self.peer.sendall(frame(DATA, END_STREAM if last else 0, stream, bytes(view[:room])))
            view, end = view[room:], end and not last
            self.window -= room
            self.windows[stream] -= room
        return True

    def call(self, path, body, seconds=10):
        """Returns the first message of the answer, or None."""
        stream = self.open(path)
        self.send(stream, message(body), end=True)
        return self.answer(stream, seconds)

    def answer(self, stream, seconds=10):
        """Returns the next message on that stream; None if it ends without one, or none comes in time."""
        until = time.monotonic() + seconds
        while True:
            got = self.answers[stream]
            if len(got) >= 5 and len(got) >= 5 + (size := int.from_bytes(got[1:5], "big")):
                self.answers[stream] = got[5 + size :]
                return got[5 : 5 + size]
            if stream in self.ended or not self.read_until(until, once=True):
                return None

    def read_until(self, until, once=False):
        """Handles frames until that time, or just one frame. False when time is up or the peer has closed."""
        while (left := until - time.monotonic()) > 0:
            try:
                self.peer.settimeout(left)
                if (head := self._take(9)) is None:
                    return False
                self._handle(head)
            except TimeoutError:
                return False
            if once:
                return True
        return False

    def _take(self, size):
        while len(self.unread) < size:
            got = self.peer.recv(1 << 16)
            if not got:
                return None
            self.unread += got
        taken, self.unread = self.unread[:size], self.unread[size:]
        return taken

    def _handle(self, head):
        kind, flags = head[3], head[4]
        stream = int.from_bytes(head[5:9], "big")
        payload = self._take(int.from_bytes(head[:3], "big")) or b""
        if kind == DATA and stream in self.answers:
            self.answers[stream] += payload
        elif kind == WINDOW and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == WINDOW:
            self.windows[stream] = self.windows.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind == PING and not flags & ACK:
            self.peer.sendall(frame(PING, ACK, 0, payload))
        elif kind == SETTINGS and not flags & ACK:
            self._adopt(payload)
        elif kind == GOAWAY:
            raise ConnectionResetError("the peer sent GOAWAY")
        if kind == RESET or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.ended.add(stream)

    def _adopt(self, settings):
        for number, value in struct.iter_unpack(">HI", settings):
            if number == 4:  # the first window of each stream
                for stream in self.windows:
                    self.windows[stream] += value - self.first_window
                self.first_window = value
        self.peer.sendall(frame(SETTINGS, ACK))

    def close(self):
        self.peer.close()


def abort(peer):
    """Closes the socket with a reset."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
