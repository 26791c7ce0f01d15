"""grpcio's end of gRPC's interoperability tests: `server PORT`, and `client ROOT HOST:PORT CASE...`."""

import sys
import time
from concurrent import futures

import grpc
import test_pb2 as pb
import test_pb2_grpc as rpc

INITIAL, TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"
REQUESTS, RESPONSES = [27182, 8, 1828, 45904], [31415, 9, 2653, 58979]


def payload(size):
    return pb.Payload(body=bytes(size))


def echo(context):
    for name, value in context.invocation_metadata():
        if name == INITIAL:
            context.send_initial_metadata([(name, value)])
        if name == TRAILING:
            context.set_trailing_metadata([(name, value)])


def expect_status(request, context):
    if request.response_status.code:
        code = next(it for it in grpc.StatusCode if it.value[0] == request.response_status.code)
        context.abort(code, request.response_status.message)


class Service(rpc.TestServiceServicer):
    def EmptyCall(self, request, context):
        return pb.Empty()

    def UnaryCall(self, request, context):
        echo(context)
        expect_status(request, context)
        return pb.SimpleResponse(payload=payload(request.response_size))

    def outputs(self, request):
        for wanted in request.response_parameters:
            time.sleep(wanted.interval_us / 1e6)
            yield pb.StreamingOutputCallResponse(payload=payload(wanted.size))

    def StreamingOutputCall(self, request, context):
        expect_status(request, context)
        yield from self.outputs(request)

    def StreamingInputCall(self, requests, context):
        size = sum(len(request.payload.body) for request in requests)
        return pb.StreamingInputCallResponse(aggregated_payload_size=size)

    def FullDuplexCall(self, requests, context):
        echo(context)
        for request in requests:
            expect_status(request, context)
            yield from self.outputs(request)


def serve(port):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    rpc.add_TestServiceServicer_to_server(Service(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


def output(size, content=0):
    parameters = [pb.ResponseParameters(size=size)]
    return pb.StreamingOutputCallRequest(response_parameters=parameters, payload=payload(content))


def never():
    yield output(RESPONSES[0], REQUESTS[0])
    time.sleep(5)


def fails(code, call):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() is code, error
        return error
    raise AssertionError("the call succeeded")


class Cases:
    def __init__(self, channel):
        self.channel = channel
        self.stub = rpc.TestServiceStub(channel)
        self.large = pb.SimpleRequest(response_size=314159, payload=payload(271828))

    def empty_unary(self):
        assert self.stub.EmptyCall(pb.Empty(), timeout=10) == pb.Empty()

    def large_unary(self):
        assert len(self.stub.UnaryCall(self.large, timeout=10).payload.body) == 314159

    def client_streaming(self):
        requests = (pb.StreamingInputCallRequest(payload=payload(size)) for size in REQUESTS)
        assert self.stub.StreamingInputCall(requests, timeout=10).aggregated_payload_size == 74922

    def server_streaming(self):
        parameters = [pb.ResponseParameters(size=size) for size in RESPONSES]
        request = pb.StreamingOutputCallRequest(response_parameters=parameters)
        sizes = [len(it.payload.body) for it in self.stub.StreamingOutputCall(request, timeout=10)]
        assert sizes == RESPONSES, sizes

    def ping_pong(self):
        requests = (output(*pair) for pair in zip(RESPONSES, REQUESTS))
        sizes = [len(it.payload.body) for it in self.stub.FullDuplexCall(requests, timeout=10)]
        assert sizes == RESPONSES, sizes

    def empty_stream(self):
        assert list(self.stub.FullDuplexCall(iter([]), timeout=10)) == []

    def custom_metadata(self):
        metadata = [(INITIAL, "test_initial_metadata_value"), (TRAILING, b"\xab\xab\xab")]
        for call in (self.stub.UnaryCall.with_call(self.large, metadata=metadata, timeout=10)[1], self.duplex(metadata)):
            assert metadata[0] in [tuple(it) for it in call.initial_metadata()], call.initial_metadata()
            assert metadata[1] in [tuple(it) for it in call.trailing_metadata()], call.trailing_metadata()

    def duplex(self, metadata):
        call = self.stub.FullDuplexCall(iter([output(314159, 271828)]), metadata=metadata, timeout=10)
        assert len(list(call)) == 1
        return call

    def status_code_and_message(self, text="test status message"):
        status = pb.EchoStatus(code=2, message=text)
        request = pb.SimpleRequest(response_status=status)
        error = fails(grpc.StatusCode.UNKNOWN, lambda: self.stub.UnaryCall(request, timeout=10))
        assert error.details() == text, error.details()
        request = pb.StreamingOutputCallRequest(response_status=status)
        error = fails(grpc.StatusCode.UNKNOWN, lambda: list(self.stub.FullDuplexCall(iter([request]), timeout=10)))
        assert error.details() == text, error.details()

    def special_status_message(self):
        self.status_code_and_message("\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n")

    def unimplemented_method(self):
        fails(grpc.StatusCode.UNIMPLEMENTED, lambda: self.stub.UnimplementedCall(pb.Empty(), timeout=10))

    def unimplemented_service(self):
        stub = rpc.UnimplementedServiceStub(self.channel)
        fails(grpc.StatusCode.UNIMPLEMENTED, lambda: stub.UnimplementedCall(pb.Empty(), timeout=10))

    def cancel_after_begin(self):
        call = self.stub.StreamingInputCall.future(pb.StreamingInputCallRequest() for _ in [time.sleep(2)])
        call.cancel()
        assert call.cancelled()

    def cancel_after_first_response(self):
        call = self.stub.FullDuplexCall(never(), timeout=10)
        assert len(next(call).payload.body) == RESPONSES[0]
        call.cancel()
        fails(grpc.StatusCode.CANCELLED, lambda: next(call))

    def timeout_on_sleeping_server(self):
        fails(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: list(self.stub.FullDuplexCall(never(), timeout=0.001)))


def client(root, address, names):
    with open(root, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    with grpc.secure_channel(address, credentials) as channel:
        cases = Cases(channel)
        for name in names:
            try:
                getattr(cases, name)()
            except Exception as error:  # The last line is what is reported.
                sys.exit(f"{name}: {error!r}"[:300].replace("\n", " "))


if sys.argv[1] == "server":
    serve(sys.argv[2])
else:
    client(sys.argv[2], sys.argv[3], sys.argv[4:])
