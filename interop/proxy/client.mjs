// CONNECT over HTTP/2: sends five bytes and their end, and prints the status and the answer, or the field Proxy-Status.
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';

const [proxy, root, target] = process.argv.slice(2);
const session = http2.connect(proxy, { ca: readFileSync(root) });
const tunnel = session.request({ ':method': 'CONNECT', ':authority': target });
let status;
let answer = '';
tunnel.on('response', (headers) => {
  status = headers[':status'];
  if (status === 200) {
    tunnel.end('words');
  } else {
    answer = headers['proxy-status'];
    tunnel.close();
  }
});
tunnel.on('data', (data) => {
  if (status === 200) answer += data;
});
tunnel.on('close', () => {
  console.log(status, answer);
  session.close();
});
