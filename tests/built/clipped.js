/* What is cut off, and text that leaves its column, but for what stands in a box that scrolls. */
() => {
  const found = [], column = document.querySelector("article.bd-article") ?? document.body;
  const say = (what, e) => found.push(`${what}: ${e.tagName} ${e.className} ${e.textContent.slice(0, 60)}`);
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push("the page scrolls sideways");
  const edge = Math.min(innerWidth, column.getBoundingClientRect().right) + 2;
  for (const e of column.querySelectorAll("*")) {
    if (!e.offsetWidth || e.closest("svg, mjx-container, .visually-hidden")) continue;
    const style = getComputedStyle(e), math = e.querySelector(":scope > mjx-container mjx-math");
    const says = style.textOverflow === "ellipsis"; // dots: the line opens
    const hides = /hidden|clip/.test(style.overflowX) && style.position !== "absolute" && !says;
    const right = e.getBoundingClientRect().right;
    const inner = math && getComputedStyle(math.parentElement).overflowX;
    if (math ? hides && inner !== "auto" && math.getBoundingClientRect().right > right + 2
             : hides && e.clientWidth && e.scrollWidth > e.clientWidth + 1) say("cut", e);
    const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (right <= edge || !(words || e.tagName === "IMG")) continue;
    let box = e.parentElement;
    while (box && !/auto|scroll|hidden/.test(getComputedStyle(box).overflowX)) box = box.parentElement;
    if (!box || box.contains(column)) say("outside of the column", e);
  }
  return found;
}
