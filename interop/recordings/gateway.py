"""Many clients of an HTTP/1.1 gateway, some of which go away before their response: gateway.py PORT COUNT"""

import asyncio
import sys


async def get(port, path, limit):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    try:
        head = await asyncio.wait_for(reader.read(), limit)
    except TimeoutError:
        head = None
    writer.close()
    return head


async def main(port, count):
    numbers, seen = iter(range(count)), {"answered": 0, "gone": 0}

    async def user():
        for number in numbers:
            if number % 10 == 0:
                await get(port, f"/slow?ms=1000&n={number}", 0.03)
                seen["gone"] += 1
            else:
                head = await get(port, f"/image/{number}.svg", 60)
                assert head.startswith(b"HTTP/1.1 200"), head
                seen["answered"] += 1

    await asyncio.gather(*(user() for _ in range(64)))
    print(seen)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
