// Node as an upstream server (`http PORT`, `h2c PORT`), as a client (`client1 ROOT URL`, `client2 ROOT URL`), and as what stands behind
// page.html (`page PORT RESULTS`).
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';

const [mode, first, second] = process.argv.slice(2);

function answer(request, response) {
    let length = 0;
    request.on('data', (piece) => { length += piece.length; });
    request.on('end', () => {
        const host = request.headers[':authority'] ?? request.headers.host;
        response.end(`${request.method} ${request.url} host=${host} length=${length}\n`);
    });
}

function ask(version, stream) {
    let text = '';
    stream.setEncoding('utf8');
    stream.on('data', (piece) => { text += piece; });
    return new Promise((resolve, reject) => {
        stream.on('error', reject);
        stream.on('end', () => resolve(text));
    });
}

async function client1(ca, url) {
    for (const method of ['GET', 'POST']) {
        const text = await new Promise((resolve, reject) => {
            const request = https.request(url, { ca, method }, (response) => {
                ask(1, response).then((text) => resolve(`1 ${response.statusCode} ${text}`), reject);
            });
            request.on('error', reject);
            request.end(method === 'POST' ? 'x'.repeat(100_000) : undefined);
        });
        process.stdout.write(text);
    }
}

async function client2(ca, url) {
    const { origin, pathname } = new URL(url);
    const session = http2.connect(origin, { ca });
    for (const method of ['GET', 'POST']) {
        const stream = session.request({ ':method': method, ':path': pathname });
        let status;
        stream.on('response', (headers) => { status = headers[':status']; });
        stream.end(method === 'POST' ? 'x'.repeat(100_000) : undefined);
        const text = await ask(2, stream);
        process.stdout.write(`2 ${status} ${text}`);
    }
    session.close();
}

// Serves page.html and what it asks for. Each report is a line of `results`.
function page(port, results) {
    const video = Buffer.alloc(5_000_000);
    video.forEach((_, index) => { video[index] = index % 251; });
    const server = http.createServer((request, response) => {
        const pieces = [];
        request.on('data', (piece) => pieces.push(piece));
        request.on('end', () => {
            const content = Buffer.concat(pieces);
            const { pathname } = new URL(request.url, 'http://localhost');
            const number = pathname.match(/^\/object\/(\d+)$/)?.[1];
            const range = request.headers.range?.match(/^bytes=(\d+)-(\d*)$/);
            if (pathname === '/') {
                response.setHeader('content-type', 'text/html');
                response.end(readFileSync(new URL('page.html', import.meta.url)));
            } else if (number) {
                response.end(`object ${number}\n`);
            } else if (pathname === '/upload') {
                response.end(String(content.length));
            } else if (pathname === '/events') {
                response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
                let count = 0;
                const timer = setInterval(() => response.write(`data: ${++count}\n\n`), 100);
                response.on('close', () => clearInterval(timer));
            } else if (pathname === '/video' && range) {
                const [first, last] = [Number(range[1]), Number(range[2] || video.length - 1)];
                response.writeHead(206, { 'content-range': `bytes ${first}-${last}/${video.length}` });
                response.end(video.subarray(first, last + 1));
            } else if (pathname === '/result') {
                appendFileSync(results, `${content}\n`);
                response.end();
            } else {
                response.statusCode = pathname === '/alive' ? 200 : 404;
                response.end();
            }
        });
    });
    // A WebSocket that sends each text back (RFC 6455).
    server.on('upgrade', (request, stream) => {
        const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
        const accept = createHash('sha1').update(key).digest('base64');
        stream.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n'
            + `sec-websocket-accept: ${accept}\r\n\r\n`);
        stream.on('data', (frame) => {
            const length = frame[1] & 0x7f;
            if ((frame[0] & 0x0f) !== 1) { stream.end(); return; }
            const mask = frame.subarray(2, 6);
            const text = frame.subarray(6, 6 + length).map((byte, index) => byte ^ mask[index % 4]);
            stream.write(Buffer.concat([Buffer.from([0x81, length]), text]));
        });
        stream.on('error', () => {});
    });
    server.listen(port, '127.0.0.1');
}

switch (mode) {
    case 'page': page(Number(first), second); break;
    case 'http': http.createServer(answer).listen(Number(first), '127.0.0.1'); break;
    case 'h2c': http2.createServer(answer).listen(Number(first), '127.0.0.1'); break;
    case 'client1': await client1(readFileSync(first), second); break;
    case 'client2': await client2(readFileSync(first), second); break;
}
