#!/usr/bin/env node
/**
 * Measures the review page in a real browser, on real and on made-up ranges.
 *
 *   tests/bench/bundle.mjs [--program FILE] [--corpora FOLDER] [--only WORD] [--no-peer]
 *
 * Every folder in FOLDER (or in $CODEBOOST_CORPORA) with a repo.bundle, and X.json, X.plan.json and
 * X.ledger.json for each range X, is a corpus. Two ranges are made once, under target/bench-bundle:
 * `wide`, one item that changes 500,000 lines of 3,000 files, and `many`, the same lines in 500 files'
 * steps of 30 items. Each is linked, rendered cold and warm and without highlighting, and opened in
 * headless Chromium.
 *
 * The run fails when a page writes to its console, asks for anything over the network, or has a row
 * that can't be selected. Everything else is printed beside its goal, never asserted: time is for
 * people. A figure over its goal carries a `!`; goals between two sizes lie on the line between them.
 * Beside it stand the figures of diff2html-cli for the range that is nearest to 10,000 lines.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Chromium } from './chromium.mjs';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const MADE = path.join(ROOT, 'target/bench-bundle');
const PEER = 'diff2html-cli@5.2.15';
const MiB = 2 ** 20;

const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
const PROGRAM = path.resolve(option('--program') ?? path.join(ROOT, 'target/release/codeboost'));
const CORPORA = option('--corpora') ?? process.env.CODEBOOST_CORPORA;
const ONLY = option('--only');

/** Goals at 1,000, 10,000, 100,000 and 500,000 changed lines; `null` where there is none. */
const SIZES = [1e3, 1e4, 1e5, 5e5];
const GOALS = {
  'size KB': [100, 500, 3000, 12000],
  'interactive ms': [600, 600, 1000, 1500],
  'switch p95 ms': [100, 100, 100, 120],
  'nodes': [4000, 4000, 5000, 8000],
  'renderer MB': [120, 120, 150, 200],
  'heap MB': [8, 8, 10, 15],
  'long frames': [3, 3, 3, 5],
  'search ms': [null, 300, 1500, 4000],
  'render plain s': [null, 0.2, 1, 4],
  'render cold s': [null, 1, 6, 30],
  'render warm s': [null, null, 2, 8],
};

function goal(name, lines) {
  const goals = GOALS[name];
  const at = Math.max(1, SIZES.findIndex((size) => size >= lines));
  const i = at < 1 || lines > SIZES[3] ? 3 : at;
  const [low, high] = [goals[i - 1], goals[i]];
  if (high === null) return null;
  if (low === null || lines >= SIZES[3]) return high;
  const share = Math.max(0, (lines - SIZES[i - 1]) / (SIZES[i] - SIZES[i - 1]));
  return low + share * (high - low);
}

// Ranges.

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'codeboost-bench-'));
process.on('exit', () => fs.rmSync(home, { recursive: true, force: true }));
const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' };
const run = (program, words, cwd, input) => execFileSync(program, words, { cwd, env, input, maxBuffer: 1 << 30, stdio: ['pipe', 'pipe', 'pipe'] });

/** A fixed sequence, so that every run measures the same bytes. */
function dice(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

const WORDS = 'let mut value = self.next(); if count > limit { return Err(error) } else for entry in &list match'.split(' ');

/** Commits of a range, each a map of path to lines; the first is the base. */
function* steps(n_items) {
  const roll = dice(7);
  const line = () => `${'    '.repeat(roll(4))}${Array.from({ length: 3 + roll(6) }, () => WORDS[roll(WORDS.length)]).join(' ')} // ${roll(1e6)}`;
  const files = new Map(Array.from({ length: 3000 }, (_, k) => [`src/d${k % 60}/f${k}.rs`, Array.from({ length: 340 }, line)]));
  yield files;
  const paths = [...files.keys()];
  for (let item = 0; item < n_items; item++) {
    const changed = new Map();
    for (let k = item; k < paths.length; k += n_items) {
      const text = [...files.get(paths[k])];
      // Nine runs of nine or ten lines, replaced: about 84 removed and 84 added.
      for (let at = 10; at < 330; at += 38) text.splice(at + roll(8), 9 + roll(2), ...Array.from({ length: 9 + roll(2) }, line));
      changed.set(paths[k], text);
    }
    yield changed;
  }
}

function make(name, n_items) {
  const folder = path.join(MADE, name);
  if (fs.existsSync(path.join(folder, 'X.json'))) return folder;
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  run('git', ['init', '-q', '--bare', '--initial-branch=head', 'repo'], folder);
  const stream = path.join(folder, 'stream');
  const out = fs.openSync(stream, 'w');
  const touched = [];
  let n = 0;
  for (const files of steps(n_items)) {
    n++;
    const who = `Bench <bench@example.invalid> ${1_600_000_000 + n * 60} +0000`;
    fs.writeSync(out, `commit refs/heads/head\nmark :${n}\nauthor ${who}\ncommitter ${who}\ndata 5\nstep\n${n > 1 ? `from :${n - 1}\n` : ''}`);
    for (const [file, lines] of files) {
      const text = `${lines.join('\n')}\n`;
      fs.writeSync(out, `M 100644 inline ${file}\ndata ${Buffer.byteLength(text)}\n${text}\n`);
    }
    if (n > 1) touched.push([...files.keys()]);
  }
  fs.closeSync(out);
  run('git', ['fast-import', '--quiet', '--date-format=raw'], path.join(folder, 'repo'), fs.readFileSync(stream));
  fs.rmSync(stream);
  const commits = run('git', ['rev-list', '--reverse', 'head'], path.join(folder, 'repo')).toString().trim().split('\n');
  const items = touched.map((paths, k) => ({
    id: `P${k + 1}`, title: `Item ${k + 1}`, intent: 'A block of files.', depends_on: [],
    files: paths.slice(0, 40).map((file) => ({ path: file, kind: 'edit', renamed_from: null, change: 'As its commit does.' })),
    acceptance: [{ type: 'check', text: 'Only what the commit did.' }],
  }));
  const write = (ending, value) => fs.writeFileSync(path.join(folder, `X${ending}`), JSON.stringify(value));
  write('.plan.json', { schema_version: 1, issue: 1, revision: 1, summary: 'A range for measuring.', items, questions: [] });
  write('.ledger.json', { schema_version: 1, commits: Object.fromEntries(commits.slice(1).map((id, k) => [id, `P${k + 1}`])) });
  write('.json', { base: commits[0], head: commits.at(-1) });
  return folder;
}

function ranges() {
  const found = [];
  for (const corpus of CORPORA ? fs.readdirSync(CORPORA).sort() : []) {
    const folder = path.join(CORPORA, corpus);
    if (!fs.existsSync(path.join(folder, 'repo.bundle'))) continue;
    for (const file of fs.readdirSync(folder)) {
      const range = /^([^.]+)\.json$/.exec(file)?.[1];
      if (range) found.push({ name: `${corpus} ${range}`, folder, range });
    }
  }
  if (!CORPORA) console.log('LEFT OUT: neither --corpora nor CODEBOOST_CORPORA names a folder of corpora');
  for (const [name, n] of [['many', 30], ['wide', 1]]) {
    if (!ONLY || name.includes(ONLY)) found.push({ name, folder: make(name, n), range: 'X' });
  }
  return found.filter((one) => !ONLY || one.name.includes(ONLY));
}

/** Seconds of CPU, user and system, with all children. */
function cpu(words, cwd) {
  const done = spawnSync('bash', ['-c', 'TIMEFORMAT="cpu %U %S"; time "$@" >/dev/null', 'bash', PROGRAM, ...words], { cwd, env, encoding: 'utf8', maxBuffer: 1 << 28 });
  const found = /cpu ([\d.]+) ([\d.]+)\s*$/.exec(done.stderr);
  if (done.status !== 0 || !found) throw new Error(`${words.join(' ')}\n${done.stderr}`);
  return Number(found[1]) + Number(found[2]);
}

function render({ name, folder, range }) {
  const work = path.join(MADE, 'work', name.replaceAll(' ', '-'));
  fs.rmSync(work, { recursive: true, force: true });
  fs.mkdirSync(work, { recursive: true });
  if (fs.existsSync(path.join(folder, 'repo.bundle'))) run('git', ['clone', '-q', '--bare', path.join(folder, 'repo.bundle'), 'repo'], work);
  else run('git', ['clone', '-q', '--bare', '--shared', path.join(folder, 'repo'), 'repo'], work);
  run(PROGRAM, ['init'], path.join(work, 'repo'));
  const file = (ending) => path.join(folder, `${range}${ending}`);
  const { base, head } = JSON.parse(fs.readFileSync(file('.json'), 'utf8'));
  const inputs = ['--repo', 'repo', '--plan', file('.plan.json'), '--ledger', file('.ledger.json')];
  run(PROGRAM, ['link', '--base', base, '--head', head, ...inputs, '-o', 'link.json'], work);
  const draw = (out, ...more) => cpu(['render', 'link.json', ...inputs, '-o', out, ...more], work);
  const plain = draw('plain.html', '--highlight', '0', '--whole-files', '0');
  const cold = draw('page.html');
  const warm = draw('warm.html');
  if (!fs.readFileSync(path.join(work, 'page.html')).equals(fs.readFileSync(path.join(work, 'warm.html')))) {
    throw new Error(`${name}: the second page is another one`);
  }
  const lines = run('git', ['diff', '--numstat', '-M', '--diff-algorithm=histogram', base, head], path.join(work, 'repo')).toString()
    .split('\n').reduce((sum, one) => sum + one.split('\t').slice(0, 2).reduce((n, text) => n + (Number(text) || 0), 0), 0);
  return { work, base, head, lines, file: path.join(work, 'page.html'), plain, cold, warm };
}

// The browser.

const HELPERS = `
  window.__long = [];
  new PerformanceObserver((list) => { for (const one of list.getEntries()) __long.push([one.startTime, one.duration]); }).observe({ type: 'longtask', buffered: true });
  window.__painted = () => new Promise((done) => requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => done(performance.now()); c.port2.postMessage(0); }));
`;
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const share = (list, p) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * p))];

/** Figures of one page. `drive` names how rows are found in it. */
async function measure(file, isOurs) {
  const browser = await Chromium.start();
  try {
    const said = [], asked = [];
    browser.listeners.push(({ method, params }) => {
      if (method === 'Runtime.consoleAPICalled') said.push(params.args.map((one) => one.value ?? one.description).join(' '));
      if (method === 'Runtime.exceptionThrown') said.push(params.exceptionDetails.text);
      if (method === 'Log.entryAdded') said.push(params.entry.text);
      if (method === 'Network.requestWillBeSent' && !/^(file|data|blob|about):/.test(params.request.url)) asked.push(params.request.url);
    });
    for (const domain of ['Page', 'Runtime', 'Log', 'Network', 'Performance']) await browser.send(`${domain}.enable`);
    await browser.send('Emulation.setDeviceMetricsOverride', { width: 1440, height: 900, deviceScaleFactor: 1, mobile: false });
    await browser.send('Page.addScriptToEvaluateOnNewDocument', { source: HELPERS });
    const loaded = new Promise((done) => browser.listeners.push(({ method }) => method === 'Page.loadEventFired' && done()));
    await browser.send('Page.navigate', { url: `file://${file}` });
    await loaded;
    const begun = Date.now();
    for (;;) {
      const [quiet, checked] = await browser.js("return [performance.now() - Math.max(0, ...__long.map(([at, ms]) => at + ms)), Boolean(document.querySelector('#app')?.dataset.checked)]");
      if (quiet > 1000 && (checked || !isOurs)) break;
      if (Date.now() - begun > 240_000) throw new Error('the page is not ready after 240 s');
      await wait(200);
    }
    const out = { 'size KB': fs.statSync(file).size / 1e3 };
    out['interactive ms'] = await browser.js(`
      const mark = (name) => performance.getEntriesByName(name)[0]?.startTime ?? 0;
      return Math.max(mark('first-contentful-paint'), mark('interactive'), ...__long.map(([at, ms]) => at + ms));`);
    Object.assign(out, await browser.memory());

    const rows = isOurs
      ? await browser.js("return [...document.querySelectorAll('[data-row]')].map((one) => one.dataset.row)")
      : await browser.js("return [...document.querySelectorAll('.d2h-file-wrapper')].map((_, n) => n)");
    const select = (row) => browser.js(isOurs ? `
      const node = document.querySelector('[data-row="' + args[0] + '"]'), begun = performance.now();
      if (node.getAttribute('aria-current') !== 'true') {
        const done = new Promise((done) => new MutationObserver((_, watch) => {
          if (document.querySelector('[data-row="' + args[0] + '"]').getAttribute('aria-current') === 'true') { watch.disconnect(); done(); }
        }).observe(document.body, { subtree: true, attributes: true, childList: true }));
        node.click();
        await Promise.race([done, new Promise((_, fail) => setTimeout(() => fail(new Error('row ' + args[0] + ' can not be selected')), 20000))]);
      }
      return (await __painted()) - begun;` : `
      const begun = performance.now();
      document.querySelectorAll('.d2h-file-wrapper')[args[0]].scrollIntoView();
      return (await __painted()) - begun;`, row);
    if (isOurs) {
      for (const row of rows) {
        await select(row);
        if (!(await browser.js("return document.querySelectorAll('#code .rows > .blk').length > 0"))) throw new Error(`row ${row} shows nothing`);
      }
      out.rows = rows.length;
    }
    const roll = dice(3), times = [];
    for (let n = 0; n < 25; n++) {
      times.push(await select(rows[roll(rows.length)]));
      await wait(60);
    }
    out['switch p50 ms'] = share(times, 0.5);
    out['switch p95 ms'] = share(times, 0.95);
    if (isOurs) await select(rows[0]);
    const frames = await browser.js(`
      const scroller = document.getElementById('code') ?? document.scrollingElement, frames = [];
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      scroller.scrollTop = 0;
      await __painted();
      let last = await frame();
      for (let n = 0; n < 90; n++) {
        scroller.scrollTop += 120;
        const now = await frame();
        frames.push(now - last);
        last = now;
        if (scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2) scroller.scrollTop = 0;
      }
      return frames;`);
    out['long frames'] = frames.filter((ms) => ms > 34).length;
    if (isOurs) {
      out['search ms'] = await browser.js(`
        document.getElementById('open-search').click();
        const query = document.getElementById('query'), said = document.getElementById('hits-said'), begun = performance.now();
        const done = new Promise((done) => new MutationObserver(() => said.textContent && done()).observe(said, { childList: true, characterData: true, subtree: true }));
        query.value = 'count';
        query.dispatchEvent(new Event('input', { bubbles: true }));
        await done;
        return performance.now() - begun;`);
      const after = await browser.memory();
      out['renderer MB after'] = after['renderer MB'];
      out['heap MB after'] = after['heap MB'];
    }
    return { out, said, asked };
  } finally {
    await browser.stop();
  }
}

/** What fonts and whole files take in a page, and the rest by kind of data. */
function weigh(file) {
  const html = fs.readFileSync(file, 'latin1');
  const sum = (pattern) => [...html.matchAll(pattern)].reduce((n, one) => n + one[0].length, 0);
  return {
    fonts: sum(/url\((?:"|')?data:font[^)]*\)/g),
    whole: sum(/<script class="data" id="whole\d+"[^<]*<\/script>\n/g),
    rows: sum(/<script class="data" id="row[-\d]+"[^<]*<\/script>\n/g),
    index: sum(/<script class="data" id="index"[^<]*<\/script>\n/g),
  };
}

function peer() {
  const folder = path.join(MADE, 'peer');
  const program = path.join(folder, 'node_modules/.bin/diff2html');
  if (!fs.existsSync(program)) {
    fs.mkdirSync(folder, { recursive: true });
    const done = spawnSync('npm', ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--silent', PEER], { encoding: 'utf8' });
    if (done.status !== 0) return null;
  }
  return program;
}

function peerPage(program, page) {
  const diff = path.join(page.work, 'range.diff'), file = path.join(page.work, 'peer.html');
  fs.writeFileSync(diff, run('git', ['diff', '-M', '--diff-algorithm=histogram', page.base, page.head], path.join(page.work, 'repo')));
  run(program, ['-i', 'file', '-s', 'line', '-F', file, '--', diff], page.work);
  return file;
}

// The run.

const faults = [];
const show = (value) => (value === undefined ? '' : value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(value < 10 ? 2 : 1));

async function main() {
  console.log(`program  ${PROGRAM}`);
  const measured = [];
  for (const range of ranges()) {
    const page = render(range);
    const weight = weigh(page.file);
    const { out, said, asked } = await measure(page.file, true);
    const own = out['size KB'];
    out['size KB'] = own - (weight.fonts + weight.whole) / 1e3;
    Object.assign(out, { 'render plain s': page.plain, 'render cold s': page.cold, 'render warm s': page.warm });
    if (said.length) faults.push(`${range.name}: the console says ${said.join('; ')}`);
    if (asked.length) faults.push(`${range.name}: asked for ${asked.join(', ')}`);
    measured.push({ range, page, out });
    console.log(`\n${range.name}: ${page.lines.toLocaleString('en')} changed lines, ${out.rows} rows, each selected`);
    console.log(`  file ${show(own)} KB: rows ${show(weight.rows / 1e3)}, index ${show(weight.index / 1e3)}, whole files ${show(weight.whole / 1e3)}, fonts ${show(weight.fonts / 1e3)}`);
    for (const name of Object.keys(GOALS)) {
      const limit = goal(name, page.lines);
      const over = limit !== null && out[name] > limit ? '!' : ' ';
      console.log(`  ${over} ${name.padEnd(16)} ${show(out[name]).padStart(9)}   ${limit === null ? 'no goal' : `goal ${show(limit)}`}`);
    }
    console.log(`    after every row: renderer ${show(out['renderer MB after'])} MB, heap ${show(out['heap MB after'])} MB; switch p50 ${show(out['switch p50 ms'])} ms`);
  }
  const near = measured.filter((one) => one.page.lines >= 5000 && one.page.lines <= 20000)[0];
  if (!near || args.includes('--no-peer')) {
    console.log('\nLEFT OUT: diff2html, for want of a range of about 10,000 lines, or by --no-peer');
  } else {
    const program = peer();
    if (!program) console.log(`\nLEFT OUT: npm can not install ${PEER}`);
    else {
      const { out } = await measure(peerPage(program, near.page), false);
      console.log(`\ndiff2html on ${near.range.name}: theirs, ours, ours over theirs`);
      const goals = { 'size KB': 15, 'interactive ms': 10, nodes: 100, 'renderer MB': 3, 'switch p95 ms': 2 };
      for (const [name, least] of Object.entries(goals)) {
        const ratio = out[name] / near.out[name];
        console.log(`  ${ratio < least ? '!' : ' '} ${name.padEnd(16)} ${show(out[name]).padStart(9)} ${show(near.out[name]).padStart(9)}   1/${show(ratio)}   goal 1/${least}`);
      }
    }
  }
  for (const fault of faults) console.log(`\nFAULT: ${fault}`);
  process.exitCode = faults.length ? 1 : 0;
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
