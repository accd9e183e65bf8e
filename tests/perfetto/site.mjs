// Serves https://ui.perfetto.dev on this machine: the UI's files over TLS, so that the page has its true origin.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';

export const HOST = 'ui.perfetto.dev';

const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.html': 'text/html', '.wasm': 'application/wasm', '.json': 'application/json', '.svg': 'image/svg+xml' };
// The wheel's build lets its page load from every port of 127.0.0.1, but Perfetto's own site only from 9001. The stricter of two policies applies.
const POLICY = "connect-src 'self' http://127.0.0.1:9001 ws://127.0.0.1:9001 blob: data:";

/** Serves the folder `dir`. Returns the server once it listens. */
export function serve(dir) {
  const pair = execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', '-', '-out', '-', '-days', '2', '-subj', `/CN=${HOST}`],
    { stdio: ['ignore', 'pipe', 'ignore'] });
  const server = https.createServer({ key: pair, cert: pair }, (request, response) => {
    const { pathname } = new URL(request.url, `https://${HOST}`);
    const file = path.join(dir, path.normalize(pathname === '/' ? '/index.html' : decodeURIComponent(pathname)));
    fs.readFile(file, (error, body) => {
      const type = TYPES[path.extname(file)] ?? 'application/octet-stream';
      response.writeHead(error ? 404 : 200, { 'content-type': type, 'content-security-policy': POLICY });
      response.end(error ? '' : body);
    });
  });
  return new Promise((done, fail) => server.on('error', fail).listen(0, '127.0.0.1', () => done(server)));
}
