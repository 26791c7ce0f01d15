"""pywebtransport as a server of the cases in src: `pywebtransport_peer.py CERTIFICATE KEY` prints its port.

The library shows its application neither protocols nor the codes with which streams and sessions end, and its draft is 13."""

import asyncio
import logging
import socket
import sys

from pywebtransport import ServerApp, ServerConfig, WebTransportReceiveStream, WebTransportStream

logging.disable(logging.CRITICAL)
MANY = 2000


async def echo_bidirectional(stream):
    data = await stream.read_all()
    await stream.write_all(data=data)


async def echo_unidirectional(session, stream):
    data = await stream.read_all()
    back = await session.create_unidirectional_stream()
    await back.write_all(data=data)


async def streams(session):
    tasks = set()
    async for stream in session.incoming_streams():
        if isinstance(stream, WebTransportStream):
            task = asyncio.create_task(echo_bidirectional(stream))
        elif isinstance(stream, WebTransportReceiveStream):
            task = asyncio.create_task(echo_unidirectional(session, stream))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def datagrams(session):
    transport = await session.create_datagram_transport()
    while True:
        await transport.send(data=await transport.receive())


async def open_streams(session, count):
    async def one(index):
        text = f"stream {index}".encode()
        uni = await session.create_unidirectional_stream()
        await uni.write_all(data=text)
        stream = await session.create_bidirectional_stream()
        await stream.write_all(data=text)
        return await stream.read_all() == text

    done = await asyncio.gather(*(one(index) for index in range(count)), return_exceptions=True)
    last = await session.create_unidirectional_stream()
    await last.write_all(data=f"failed {sum(it is not True for it in done)}".encode())


async def handle(session):
    path = session.path.split("?")[0]
    if path == "/close":
        async for stream in session.incoming_streams():
            await stream.read(size=1)
            await session.close(code=9, reason="server", close_connection=False)
            return
    tasks = [asyncio.create_task(streams(session)), asyncio.create_task(datagrams(session))]
    if path.startswith("/open/"):
        tasks = [asyncio.create_task(open_streams(session, int(path.removeprefix("/open/"))))]
    await session.wait_closed()
    for task in tasks:
        task.cancel()


async def main(certificate, key):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = ServerConfig(
        certfile=certificate, keyfile=key, initial_max_data=1 << 26, initial_max_streams_bidi=MANY, initial_max_streams_uni=MANY,
        max_streams_per_connection=2 * MANY, max_incoming_streams=MANY, max_sessions=100, bind_host="127.0.0.1", bind_port=port,
    )
    app = ServerApp(config=config)
    app.pattern_route(pattern="/.*")(handle)
    async with app:
        serving = asyncio.create_task(app.serve(host="127.0.0.1", port=port))
        await asyncio.sleep(0.5)
        print(port, flush=True)
        await serving


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
