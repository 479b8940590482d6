/* Letters too small to be read: of the page, of charts drawn in it, and how wide its figures are shown,
   each with the SVG that says how large its letters are. */
(least) => {
  const small = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest("script, style, noscript, template, mjx-container, sub, sup")) continue;
    if (!e.checkVisibility() || !e.getClientRects().length) continue;
    const svg = e.closest("svg"), box = svg?.viewBox.baseVal;
    const scale = box?.width ? svg.getBoundingClientRect().width / box.width : 1;
    const size = parseFloat(getComputedStyle(e).fontSize) * scale;
    if (size < least) small.push(`${size.toFixed(1)} px: ${e.tagName} ${node.data.trim().slice(0, 40)}`);
  }
  const figures = [...document.querySelectorAll(".bd-article img.fig")];
  const shown = figures.map((img) => [img.offsetWidth, img.src.endsWith(".svg") ? img.src : null]);
  return { small, shown };
}
