/* Names for what the theme and pandas leave without: folds of the sidebar, the sidebar itself, empty
   heads of tables. */
for (const summary of document.querySelectorAll(".bd-sidebar-primary details > summary")) {
  const link = summary.closest("li")?.querySelector("a");
  summary.setAttribute("aria-label", `Pages under ${link?.textContent.trim() ?? "this"}`);
}
const side = document.querySelector(".bd-sidebar-primary");
side?.setAttribute("role", "complementary");
side?.setAttribute("aria-label", "Book");
/* The menu follows the page, wherever the theme left it. */
addEventListener("load", () => {
  const here = side?.querySelector("a.current.internal[href='#']");
  if (here) side.scrollTop += here.getBoundingClientRect().top - innerHeight / 2;
});
for (const head of document.querySelectorAll(".bd-article th"))
  if (!head.textContent.trim() && !head.querySelector("img")) {
    const cell = document.createElement("td");
    cell.colSpan = head.colSpan;
    cell.className = head.className;
    head.replaceWith(cell);
  }
/* A head that is a formula is named by its source. */
for (const head of document.querySelectorAll(".bd-article th")) {
  const math = head.querySelector(".math");
  if (!math || head.textContent.trim() !== math.textContent.trim()) continue;
  const name = document.createElement("span");
  name.className = "visually-hidden";
  name.textContent = math.textContent.slice(2, -2).replaceAll("\\", "");
  head.append(name);
}
/* How many letters the words of a cell's table have, for the style to leave them room. */
for (const cell of document.querySelectorAll("table.dataframe tbody :is(th, td)")) {
  const words = cell.textContent.trim();
  if (cell.matches("th") || / /.test(words)) cell.style.setProperty("--letters", words.length);
  if (!cell.children.length) cell.textContent = cell.textContent.replaceAll("\u00a0[", " ["); // may wrap there
}
/* Tables with sentences in them: on a phone their rows are cards, whose lines the heads name. */
for (const table of document.querySelectorAll(".bd-article table:not(.dataframe, .claims)")) {
  const heads = [...table.querySelectorAll("thead tr:only-child > *")].map((head) => head.textContent.trim());
  const cells = [...table.querySelectorAll("tbody td")];
  if (heads.length < 3 || !cells.some((cell) => cell.textContent.length > 50)) continue;
  table.classList.add("cards");
  for (const cell of cells) cell.dataset.head = heads[cell.cellIndex] ?? "";
}
/* The bibliography: roles that its entries may not have. */
for (const entry of document.querySelectorAll(".citation, .citation-list, .citation .backrefs, .citation [role]"))
  entry.removeAttribute("role");
/* What scrolls sideways can be reached by the keyboard. */
const reach = () => {
  for (const box of document.querySelectorAll(
    ".pst-scrollable-table-container, .text_html, mjx-container, .math, pre, figure, .method-side",
  ))
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
};
const article = document.querySelector(".bd-article");
if (article) new ResizeObserver(reach).observe(article); // formulas grow when they come into sight
