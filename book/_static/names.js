/* Names for what the theme and pandas leave without: folds of the sidebar, the sidebar itself, empty
   heads of tables. */
for (const summary of document.querySelectorAll(".bd-sidebar-primary details > summary")) {
  const link = summary.closest("li")?.querySelector("a");
  summary.setAttribute("aria-label", `Pages under ${link?.textContent.trim() ?? "this"}`);
}
for (const [part, name] of [[".bd-sidebar-primary", "Book"]]) {
  const found = document.querySelector(part);
  found?.setAttribute("role", "complementary");
  found?.setAttribute("aria-label", name);
}
for (const head of document.querySelectorAll(".bd-article th"))
  if (!head.textContent.trim() && !head.querySelector("img")) {
    const cell = document.createElement("td");
    cell.colSpan = head.colSpan;
    cell.className = head.className;
    head.replaceWith(cell);
  }
/* What scrolls sideways can be reached by the keyboard. */
const reach = () => {
  for (const box of document.querySelectorAll(
    ".pst-scrollable-table-container, .text_html, div.math, .method-side, .claims-scroll",
  ))
    if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1)
      box.tabIndex = 0;
};
addEventListener("load", reach);
addEventListener("resize", reach);
