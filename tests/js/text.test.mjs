import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOf, fromBase64, markOf, pieces, plain, rawOf, toBase64, tokens } from '../../assets/js/text.js';

const RAW = '\uFDD0';

test('bytes that are not text come back as they were', () => {
  assert.deepEqual([...bytesOf(`caf${RAW}\u00E9!`)], [...Buffer.from('caf'), 0xE9, 0x21]);
  assert.deepEqual([...bytesOf(`${RAW}${RAW}`)], [0xEF, 0xB7, 0x90]);
  assert.deepEqual([...bytesOf('ü😀')], [...Buffer.from('ü😀')]);
});

test('what can not be seen gets a mark', () => {
  const text = 'a\u202Eb\u200Bc\u00A0d\u001B[31m';
  assert.equal(plain(text), 'a⟨U+202E⟩b⟨U+200B⟩c⟨NBSP⟩d⟨ESC⟩[31m');
  assert.equal(plain(`x${RAW}\u00FFy`), 'x⟨xFF⟩y');
  assert.deepEqual(pieces('plain text'), [{ text: 'plain text', mark: false }]);
});

test('all bidirectional controls and invisible characters are marked', () => {
  const codes = [0x061C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069,
    0x00AD, 0x034F, 0x115F, 0x1160, 0x180B, 0x200B, 0x2060, 0x2064, 0x3164, 0xFE0F, 0xFEFF, 0xFFA0, 0xE0001, 0xE01EF,
    0x2028, 0x2029, 0x3000, 0x1680, 0x0000, 0x007F, 0x0085];
  for (const code of codes) {
    const found = pieces(String.fromCodePoint(code));
    assert.ok(found.length === 1 && found[0].mark, `U+${code.toString(16)}`);
    assert.match(markOf(found[0].text), /^⟨.+⟩$/);
  }
});

test('letters of any script stay', () => {
  for (const text of ['אב גד', 'ελληνικά', '漢字', 'tab\there', 'é', 'e\u0301']) assert.equal(plain(text), text);
});

test('a mark copies as the character it stands for', () => {
  assert.equal(rawOf('\u202E'), '\u202E');
  assert.equal(rawOf(`${RAW}${RAW}`), RAW);
  assert.equal(rawOf(`${RAW}\u00FF`), '\uFFFD');
});

test('line breaks are left alone in prose only', () => {
  assert.deepEqual(pieces('a\nb', true).filter((one) => one.mark), []);
  assert.equal(pieces('a\nb').filter((one) => one.mark).length, 1);
});

test('token classes and word marks are joined', () => {
  const shown = (...all) => tokens(...all).map((one) => [one.text, one.kind, one.word]);
  const whole = [['let ', 'k', false], ['a', '.', true], [' = ', '.', false], ['1', 'n', false]];
  assert.deepEqual(shown('let a = 1', 'k..n', '4.w'), whole);
  assert.deepEqual(shown('let a = 1', '!4k4.n', '4.w'), whole);
  assert.deepEqual(shown('  // \u{1f600} é', 'cccc', ''), [['  ', '.', false], ['// \u{1f600} é', 'c', false]]);
  assert.deepEqual(shown('"a" b', 'sss', ''), [['"a"', 's', false], [' b', '.', false]]);
  assert.deepEqual(tokens('abc', '', ''), [{ text: 'abc', kind: '.', word: false }]);
  assert.deepEqual(tokens('', 'k', 'w'), []);
});

test('base64 goes both ways', () => {
  const bytes = Uint8Array.from({ length: 70000 }, (_, i) => i % 251);
  assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
});
