"""Fetches two URLs through each of two proxies with httpx (HTTP/1.1 and HTTP/2), aiohttp and requests."""

import asyncio
import ssl
import sys

import aiohttp
import httpx
import requests

root, secure, plain, *proxies = sys.argv[1:]


def trust():
    return ssl.create_default_context(cafile=root)


async def over_aiohttp(url, proxy):
    async with aiohttp.ClientSession() as session:
        async with session.get(url, proxy=proxy, ssl=trust()) as response:
            return await response.text()


for proxy in proxies:
    for url in (secure, plain):
        for http2 in (False, True):
            context = trust() if proxy.startswith("https") else None
            through = httpx.Proxy(proxy, ssl_context=context)
            with httpx.Client(proxy=through, verify=trust(), http2=http2) as client:
                print(client.get(url).text.strip())
        print(asyncio.run(over_aiohttp(url, proxy)).strip())
        both = {"http": proxy, "https": proxy}
        print(requests.get(url, proxies=both, verify=root).text.strip())
