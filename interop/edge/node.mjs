// Node as an upstream server (`http PORT`, `h2c PORT`) and as a client (`client1 ROOT URL`, `client2 ROOT URL`).
import { readFileSync } from 'node:fs';
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

switch (mode) {
    case 'http': http.createServer(answer).listen(Number(first), '127.0.0.1'); break;
    case 'h2c': http2.createServer(answer).listen(Number(first), '127.0.0.1'); break;
    case 'client1': await client1(readFileSync(first), second); break;
    case 'client2': await client2(readFileSync(first), second); break;
}
