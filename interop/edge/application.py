"""An application of hypercorn that tells what arrived."""


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    length = 0
    while True:
        event = await receive()
        length += len(event.get("body", b""))
        if not event.get("more_body"):
            break
    host = dict(scope["headers"]).get(b"host", b"").decode()
    path = scope["raw_path"].decode()
    if scope["query_string"]:
        path += "?" + scope["query_string"].decode()
    text = f"{scope['method']} {path} host={host} length={length}\n".encode()
    headers = [(b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})
