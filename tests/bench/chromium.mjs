/** Headless Chromium over its own protocol and a pair of pipes, for benchmarks and pictures. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export class Chromium {
  static async start() {
    const self = new Chromium();
    self.profile = fs.mkdtempSync(path.join(os.tmpdir(), 'codeboost-bench-profile-'));
    self.process = spawn('chromium', [
      '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--disable-extensions', '--host-resolver-rules=MAP * ~NOTFOUND',
      `--user-data-dir=${self.profile}`, '--remote-debugging-pipe', '--window-size=1440,900', 'about:blank',
    ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, LC_ALL: 'C', HOME: self.profile } });
    self.next = 0;
    self.waiting = new Map();
    self.listeners = [];
    let rest = '';
    self.process.stdio[4].on('data', (data) => {
      const parts = (rest + data).split('\0');
      rest = parts.pop();
      for (const part of parts) self.take(JSON.parse(part));
    });
    const { targetInfos } = await self.send('Target.getTargets');
    const page = targetInfos.find((one) => one.type === 'page');
    const { sessionId } = await self.send('Target.attachToTarget', { targetId: page.targetId, flatten: true });
    self.session = sessionId;
    return self;
  }

  take(message) {
    if (message.id !== undefined) {
      const { done, fail } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) fail(new Error(message.error.message));
      else done(message.result);
    } else for (const act of this.listeners) act(message);
  }

  send(method, params = {}, sessionId = this.session) {
    const id = ++this.next;
    this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: sessionId || undefined })}\0`);
    return new Promise((done, fail) => this.waiting.set(id, { done, fail }));
  }

  /** The value of a script that may wait. */
  async js(body, ...values) {
    const expression = `(async (...args) => { ${body} })(...${JSON.stringify(values)})`;
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${body}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  }

  async memory() {
    await this.send('HeapProfiler.collectGarbage');
    const { metrics } = await this.send('Performance.getMetrics');
    const metric = (name) => metrics.find((one) => one.name === name).value;
    const { processInfo } = await this.send('SystemInfo.getProcessInfo', {}, '');
    const sizes = processInfo.filter((one) => one.type === 'renderer').map(({ id }) => {
      try {
        return Number(/^Pss:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))[1]) / 1024;
      } catch {
        return 0;
      }
    });
    return { nodes: metric('Nodes'), 'heap MB': metric('JSHeapUsedSize') / 1e6, 'renderer MB': Math.max(...sizes) };
  }

  async stop() {
    this.process.kill('SIGKILL');
    await new Promise((done) => this.process.once('exit', done));
    fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
