"""The pages that browsers load for recordings, and the server behind `courser serve --proxy` that has them.

A page reports its end with a request for /done, whose query has the result as JSON.
"""

import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

IMAGE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    '<rect width="20" height="20" fill="#{:06x}"/></svg>'
)

REPORT = """
<script>
performance.setResourceTimingBufferSize(100000);
function report(result) {
  const protocols = {};
  for (const entry of ['navigation', 'resource'].flatMap(type => performance.getEntriesByType(type)))
    protocols[entry.nextHopProtocol] = (protocols[entry.nextHopProtocol] || 0) + 1;
  fetch('/done?' + encodeURIComponent(JSON.stringify({ ...result, protocols })));
}
const pause = ms => new Promise(done => setTimeout(done, ms));
</script>
"""


def images(count, report="report", query=""):
    """A page of `count` images, whose addresses no page with another query has."""
    tags = "\n".join(f'<img src="/image/{n}.svg?{query}" width=20 height=20>' for n in range(count))
    return f"""{REPORT}{tags}
<script>
addEventListener('load', () => {{
  const all = [...document.images];
  {report}({{ images: all.length, broken: all.filter(image => !image.naturalWidth).length }});
}});
</script>"""


def tabs(count, each):
    """Opens `count` tabs with pages of `each` images, and reports when all have loaded."""
    return f"""{REPORT}
<script>
let loaded = 0, broken = 0;
new BroadcastChannel('tabs').onmessage = event => {{
  broken += event.data.broken;
  if (++loaded === {count}) report({{ tabs: loaded, broken }});
}};
for (let n = 0; n < {count}; n++) open('/tab/{each}?' + n);
</script>"""


def tab(each, query):
    return images(each, "new BroadcastChannel('tabs').postMessage", query)


# A user types and deletes, and the page asks anew with every key, 30 times a second. The server takes
# 400 ms for an answer, so that nearly all requests are cancelled.
SEARCH = f"""{REPORT}
<script>
(async () => {{
  let before, cancelled = 0, answered = 0;
  for (let key = 0; key < 600; key++) {{
    before?.abort();
    before = new AbortController();
    fetch('/slow?ms=400&q=' + key, {{ signal: before.signal }})
      .then(() => answered++, () => cancelled++);
    await pause(33);
  }}
  await pause(1000);
  report({{ cancelled, answered }});
}})();
</script>"""

# A map that is flung across again and again: 200 tiles each time, which the next one makes useless.
SCROLL = f"""{REPORT}
<script>
(async () => {{
  let cancelled = 0, answered = 0;
  for (let fling = 0; fling < 30; fling++) {{
    const gone = new AbortController();
    for (let tile = 0; tile < 200; tile++)
      fetch(`/slow?ms=300&tile=${{fling}}-${{tile}}`, {{ signal: gone.signal }})
        .then(() => answered++, () => cancelled++);
    await pause(fling % 5 === 4 ? 1500 : 250);
    gone.abort();
  }}
  await pause(1000);
  report({{ cancelled, answered }});
}})();
</script>"""

# Thirty widgets wait for news for up to two seconds, half of them give up before and ask again.
POLL = f"""{REPORT}
<script>
(async () => {{
  let cancelled = 0, answered = 0;
  await Promise.all([...Array(30).keys()].map(async widget => {{
    for (let round = 0; round < 10; round++) {{
      const gone = new AbortController();
      const end = widget % 2 ? setTimeout(() => gone.abort(), 1000) : null;
      await fetch(`/slow?ms=2000&widget=${{widget}}-${{round}}`, {{ signal: gone.signal }})
        .then(() => answered++, () => cancelled++);
      clearTimeout(end);
    }}
  }}));
  report({{ cancelled, answered }});
}})();
</script>"""

# A machine that sleeps between two uses of a page.
WAKE = f"""{REPORT}
<script>
(async () => {{
  let answered = 0;
  for (const round of [1, 2]) {{
    await Promise.all([...Array(40).keys()].map(async number => {{
      await fetch(`/image/${{number}}.svg?${{round}}`);
      answered++;
    }}));
    if (round === 1) await pause(25000);
  }}
  report({{ answered }});
}})();
</script>"""

PAGES = {"/search": SEARCH, "/scroll": SCROLL, "/poll": POLL, "/wake": WAKE}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        parts = path.strip("/").split("/")
        if path == "/done":
            self.server.result = json.loads(urllib.parse.unquote(query))
            self.answer("text/plain", "")
            self.server.is_done.set()
        elif path == "/slow":
            milliseconds = int(urllib.parse.parse_qs(query)["ms"][0])
            time.sleep(milliseconds / 1000)
            self.answer("text/plain", query)
        elif parts[0] == "image":
            number = int(parts[1].removesuffix(".svg"))
            self.answer("image/svg+xml", IMAGE.format(number * 7919 % (1 << 24)))
        elif parts[0] == "images":
            self.answer("text/html", images(int(parts[1])))
        elif parts[0] == "tabs":
            self.answer("text/html", tabs(int(parts[1]), int(parts[2])))
        elif parts[0] == "tab":
            self.answer("text/html", tab(int(parts[1]), query))
        elif path in PAGES:
            self.answer("text/html", PAGES[path])
        else:
            self.answer("text/plain", "", 404)

    def answer(self, content_type, text, status=200):
        content = text.encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("cache-control", "max-age=600")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Backend(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.is_done, self.result = threading.Event(), None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Clients that go away are no news."""
