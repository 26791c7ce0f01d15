"""gRPC, client and server: grpc_calls.py serve | grpc_calls.py call ROOT PORT"""

import asyncio
import sys

import grpc

SERVICE = "recordings.Calls"


async def echo(request, _):
    return request


async def late(request, _):
    await asyncio.sleep(5)
    return request


async def chat(requests, _):
    async for request in requests:
        yield request


async def news(request, _):
    for _ in range(int(request)):
        yield b"n" * 20_000


async def serve():
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {
        "Echo": grpc.unary_unary_rpc_method_handler(echo),
        "Late": grpc.unary_unary_rpc_method_handler(late),
        "Chat": grpc.stream_stream_rpc_method_handler(chat),
        "News": grpc.unary_stream_rpc_method_handler(news),
    })])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


async def call(root, port):
    with open(root, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    options = [("grpc.keepalive_time_ms", 1000), ("grpc.keepalive_permit_without_calls", 1),
               ("grpc.http2.max_pings_without_data", 0)]
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials, options) as channel:
        unary = channel.unary_unary(f"/{SERVICE}/Echo")
        slow = channel.unary_unary(f"/{SERVICE}/Late")
        chat = channel.stream_stream(f"/{SERVICE}/Chat")
        news = channel.unary_stream(f"/{SERVICE}/News")

        async def talk():
            # A conversation in single messages.
            stream = chat()
            for number in range(150):
                await stream.write(b"%d" % number)
                assert await stream.read() == b"%d" % number
                await asyncio.sleep(0.01)
            await stream.done_writing()

        async def short(count):
            for number in range(count):
                assert await unary(b"%d" % number) == b"%d" % number

        async def impatient(count):
            for _ in range(count):
                try:
                    await slow(b"late", timeout=0.02)
                    raise AssertionError("in time")
                except grpc.aio.AioRpcError as error:
                    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error

        async def read():
            assert len([item async for item in news(b"200")]) == 200

        await asyncio.gather(*(talk() for _ in range(5)), *(short(50) for _ in range(20)),
                             *(impatient(20) for _ in range(10)), *(read() for _ in range(3)))
        # The channel is idle, and only its keep-alive PING frames go on.
        await asyncio.sleep(5)
        await short(10)
    print(f"gRPC {grpc.__version__}")


if sys.argv[1] == "serve":
    asyncio.run(serve())
else:
    asyncio.run(call(sys.argv[2], sys.argv[3]))
