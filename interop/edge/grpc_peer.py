"""grpcio at both ends: `server PORT`, and `client ROOT HOST:PORT`, which calls each kind of method."""

import sys
from concurrent import futures

import grpc


class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return {
            "/edge/One": grpc.unary_unary_rpc_method_handler(self.one),
            "/edge/Many": grpc.stream_stream_rpc_method_handler(self.many),
            "/edge/Fail": grpc.unary_unary_rpc_method_handler(self.fail),
        }.get(details.method)

    def one(self, request, context):
        return request[::-1]

    def many(self, requests, context):
        context.set_trailing_metadata([("x-sum", "1")])
        yield from requests

    def fail(self, request, context):
        context.abort(grpc.StatusCode.ALREADY_EXISTS, "not twice")


def serve(port):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), handlers=[Handler()])
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


def client(root, address):
    with open(root, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    with grpc.secure_channel(address, credentials) as channel:
        assert channel.unary_unary("/edge/One")(b"abc", timeout=10) == b"cba"
        large = b"x" * 3_000_000
        assert channel.unary_unary("/edge/One")(large, timeout=20) == large
        call = channel.stream_stream("/edge/Many")(iter([b"1", b"2", b"3"]), timeout=10)
        assert list(call) == [b"1", b"2", b"3"]
        assert ("x-sum", "1") in call.trailing_metadata()
        try:
            channel.unary_unary("/edge/Fail")(b"", timeout=10)
            raise AssertionError("the call succeeded")
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.ALREADY_EXISTS, error
    print("all calls")


if sys.argv[1] == "server":
    serve(sys.argv[2])
else:
    client(sys.argv[2], sys.argv[3])
