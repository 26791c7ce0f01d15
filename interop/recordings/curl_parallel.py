"""curl's parallel mode, with nghttp3 and ngtcp2: curl_parallel.py ROOT PORT COUNT"""

import asyncio
import sys

import curl_cffi
from curl_cffi import AsyncSession, CurlHttpVersion, CurlOpt


async def main(root, port, count):
    options = {CurlOpt.RESOLVE: [f"localhost:{port}:127.0.0.1"], CurlOpt.PIPEWAIT: 1}
    async with AsyncSession(verify=root, http_version=CurlHttpVersion.V3ONLY, max_clients=200,
                            curl_options=options, timeout=120) as session:
        first = await session.get(f"https://localhost:{port}/image/0.svg")
        assert first.http_version == 30, first.http_version
        urls = (f"https://localhost:{port}/image/{number}.svg" for number in range(1, count))
        responses = await asyncio.gather(*map(session.get, urls))
        assert all(response.status_code == 200 for response in responses)
    print(curl_cffi.Curl().version().decode())


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
