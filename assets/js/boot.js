/**
 * Unpacks the page's script and runs it. The policy in the page names the digest of what may run,
 * so that nothing else can come of it, and the one way to make a script is taken here.
 */
(async () => {
  document.documentElement.classList.add('scripted');
  try {
    const packed = Uint8Array.from(atob(document.getElementById('script')?.textContent ?? ''), (c) => c.charCodeAt(0));
    const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).text();
    const { trustedTypes } = /** @type {any} */ (globalThis);
    const policy = trustedTypes?.createPolicy('page', { createScript: (/** @type {string} */ words) => words });
    const script = document.createElement('script');
    script.text = policy ? policy.createScript(text) : text;
    document.body.append(script);
    // What runs takes its source away.
    if (document.getElementById('script')) throw new Error('the script did not run');
  } catch {
    const main = document.createElement('main'), title = document.createElement('h1'), words = document.createElement('p');
    main.className = 'plainpage';
    title.textContent = 'This page is damaged';
    words.textContent = 'Its script can not be read. Make it again with: codeboost render';
    main.append(title, words);
    document.body.replaceChildren(main);
  }
})();
