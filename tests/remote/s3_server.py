#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""moto's S3 on loopback; it puts the files of a folder into one bucket before it listens.

So it can be killed and started again, and has the same objects. In front of moto,
botocore checks each request's signature, and every twentieth request is
refused or cut off in the middle.

usage: s3_server.py FOLDER BUCKET PORT      prints "ready" once it listens
"""
import itertools
import pathlib
import sys

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.test import Client

KEY, SECRET, TOKEN, REGION = "AKIDEXAMPLE", "a/secret+key", "a session", "eu-west-1"
FAIL_EVERY = 20


def complaint(environ):
    """Returns what is wrong with the request's signature; None if nothing is."""
    given = environ.get("HTTP_AUTHORIZATION", "")
    scheme, _, rest = given.partition(" ")
    if scheme != "AWS4-HMAC-SHA256":
        return "AccessDenied"
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    if not fields["Credential"].startswith(KEY + "/"):
        return "InvalidAccessKeyId"
    headers = {name: environ["HTTP_" + name.upper().replace("-", "_")]
               for name in fields["SignedHeaders"].split(";")}
    if headers.get("x-amz-security-token") != TOKEN:
        return "InvalidToken"
    request = AWSRequest("GET", f"http://{environ['HTTP_HOST']}{environ['RAW_URI']}", headers=headers)
    request.context["timestamp"] = headers["x-amz-date"]
    signer = S3SigV4Auth(Credentials(KEY, SECRET, TOKEN), "s3", REGION)
    canonical = signer.canonical_request(request)
    expected = signer.signature(signer.string_to_sign(request, canonical), request)
    return None if fields["Signature"] == expected else "SignatureDoesNotMatch"


def refusal(start_response, status, code):
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>by the test</Message></Error>".encode()
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def half(body):
    """Sends the first half of the application's answer, then ends the connection."""
    whole = b"".join(body)
    yield whole[:len(whole) // 2]
    raise ConnectionAbortedError("by the test")


class Gate:
    def __init__(self, app):
        self.app, self.requests = app, itertools.count(1)

    def __call__(self, environ, start_response):
        wrong = complaint(environ)
        if wrong:
            return refusal(start_response, "403 Forbidden", wrong)
        number = next(self.requests)
        if number % FAIL_EVERY == 0:
            if number % (2 * FAIL_EVERY) == 0:
                return refusal(start_response, "503 Slow Down", "SlowDown")
            return half(self.app(environ, start_response))
        return self.app(environ, start_response)


def main():
    folder, bucket, port = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    app = DomainDispatcherApplication(create_backend_app)
    client = Client(app)
    headers = {"Host": f"127.0.0.1:{port}",
               "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/{REGION}/s3/aws4_request"}
    created = client.put(f"/{bucket}", headers=headers, data=(
        f"<CreateBucketConfiguration><LocationConstraint>{REGION}</LocationConstraint></CreateBucketConfiguration>"))
    assert created.status_code == 200, created.text
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            put = client.put(f"/{bucket}/{file.relative_to(folder)}", headers=headers, data=file.read_bytes())
            assert put.status_code == 200, put.text
    server = make_server("127.0.0.1", port, Gate(app), threaded=True)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
