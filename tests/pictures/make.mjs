#!/usr/bin/env node
/**
 * Makes the pictures of the main states of the pages, which lie beside this script.
 *
 *   cargo build -p codeboost -p codeboost-render --example sample --features codeboost-render/sample
 *   tests/pictures/make.mjs [--program FILE] [--sample FILE] [--out FOLDER]
 *
 * They are for people: look at each after a change of templates or styles, and keep the new ones
 * with it. Nothing compares them by program, because fonts are drawn a little differently on each
 * machine.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Chromium } from '../bench/chromium.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const args = process.argv.slice(2);
const option = (name, usual) => path.resolve(args.includes(name) ? args[args.indexOf(name) + 1] : usual);
const PROGRAM = option('--program', path.join(HERE, '../../target/debug/codeboost'));
const SAMPLE = option('--sample', path.join(HERE, '../../target/debug/examples/sample'));
const OUT = option('--out', HERE);

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'codeboost-pictures-'));
process.on('exit', () => fs.rmSync(work, { recursive: true, force: true }));
const env = { PATH: process.env.PATH, HOME: work, LC_ALL: 'C', GIT_CONFIG_NOSYSTEM: '1' };
const run = (program, words, cwd = work) => execFileSync(program, words, { cwd, env, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'] });

const sample = path.join(work, 'sample.html');
fs.writeFileSync(sample, run(SAMPLE, []));
const damaged = path.join(work, 'damaged.html');
// Another letter in what a row shows.
fs.writeFileSync(damaged, fs.readFileSync(sample, 'utf8').replace(/( id="row3-0"[^>]*>.{9})(.)/, (_, before, letter) => before + (letter === 'A' ? 'B' : 'A')));
run(PROGRAM, ['demo', '--folder', 'demo']);
const project = path.join(work, 'demo/tidepool');
run(PROGRAM, ['render', '--site'], project);
const site = (name) => path.join(project, '.codeboost/site', `${name}.html`);
const plan = path.join(project, '.codeboost/tasks/412/plan.html');

const click = (css) => `document.querySelector(${JSON.stringify(css)}).click();`;

/** Name, file with fragment, width, theme, and what is done before. */
const PICTURES = [
  ['item', `${sample}#P1`, 1440, 'dark'],
  ['item-light', `${sample}#P1`, 1440, 'light'],
  ['item-wide', `${sample}#P1`, 1920, 'dark'],
  ['item-narrow', `${sample}#P1`, 1280, 'dark'],
  ['item-one-pane', `${sample}#P1`, 1024, 'dark'],
  ['split', `${sample}#P1`, 1920, 'dark', click('#split')],
  ['stale', `${sample}#P2`, 1440, 'dark'],
  ['cards', `${sample}#P3`, 1440, 'dark'],
  ['unplanned', `${sample}#unplanned`, 1440, 'dark'],
  ['unplanned-light', `${sample}#unplanned`, 1440, 'light'],
  ['ambiguous', `${sample}#ambiguous`, 1280, 'dark'],
  ['blockers', `${sample}#P1`, 1440, 'dark', click('#main-button')],
  ['keys', `${sample}#P1`, 1440, 'dark', click('#open-keys')],
  ['damaged', `${damaged}#P1`, 1440, 'dark'],
  ['no-change', `${sample}#P5`, 1440, 'light'],
  ['plan', plan, 1440, 'dark'],
  ['site-review', site('review'), 1280, 'dark'],
  ['site-settings', site('settings'), 1280, 'light'],
  ['site-learning', site('learning'), 1280, 'dark'],
  ['print', `${sample}#P1`, 1000, 'light', null, true],
];

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function main() {
  const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : '';
  for (const [name, file, width, theme, act, isPrint] of PICTURES) {
    if (!name.includes(only)) continue;
    const browser = await Chromium.start();
    try {
      await browser.send('Page.enable');
      await browser.send('Emulation.setDeviceMetricsOverride', { width, height: isPrint ? 1300 : 900, deviceScaleFactor: 1, mobile: false });
      await browser.send('Emulation.setEmulatedMedia', { media: isPrint ? 'print' : 'screen', features: [{ name: 'prefers-color-scheme', value: theme }, { name: 'prefers-reduced-motion', value: 'reduce' }] });
      await browser.send('Page.navigate', { url: `file://${file}` });
      for (let n = 0; n < 100; n++) {
        await wait(100);
        if (await browser.js("return document.readyState === 'complete' && (!document.querySelector('#app') || Boolean(document.querySelector('#app').dataset.checked))").catch(() => false)) break;
      }
      if (act) await browser.js(act);
      if (isPrint) await browser.js("dispatchEvent(new Event('beforeprint'))");
      await wait(300);
      const { data } = await browser.send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: false });
      fs.writeFileSync(path.join(OUT, `${name}.png`), Buffer.from(data, 'base64'));
    } finally {
      await browser.stop();
    }
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
