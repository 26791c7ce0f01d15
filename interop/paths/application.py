"""An application of ASGI for hypercorn: GET /bytes/N is answered with the file of that name."""

import os
import pathlib

SITE = pathlib.Path(os.environ["SITE"])


async def app(scope, receive, send) -> None:
    if scope["type"] != "http":
        return
    body = (SITE / scope["path"].lstrip("/")).read_bytes()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for start in range(0, len(body), 65536):
        part = {"type": "http.response.body", "body": body[start : start + 65536]}
        await send({**part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
