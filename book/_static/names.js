/* Names for what the theme and pandas leave without: folds of the sidebar, the sidebar itself, empty
   heads of tables. */
for (const summary of document.querySelectorAll(".bd-sidebar-primary details > summary")) {
  const link = summary.closest("li")?.querySelector("a");
  summary.setAttribute("aria-label", `Pages under ${link?.textContent.trim() ?? "this"}`);
}
const side = document.querySelector(".bd-sidebar-primary");
side?.setAttribute("role", "complementary");
side?.setAttribute("aria-label", "Book");
for (const head of document.querySelectorAll(".bd-article th"))
  if (!head.textContent.trim() && !head.querySelector("img")) {
    const cell = document.createElement("td");
    cell.colSpan = head.colSpan;
    cell.className = head.className;
    head.replaceWith(cell);
  }
/* The bibliography: roles that its entries may not have. */
for (const entry of document.querySelectorAll(".citation, .citation-list, .citation .backrefs, .citation [role]"))
  entry.removeAttribute("role");
/* What scrolls sideways can be reached by the keyboard. */
const reach = () => {
  for (const box of document.querySelectorAll(
    ".pst-scrollable-table-container, .text_html, .math > mjx-container, span.math, .method-side, .claims-scroll",
  ))
    if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1)
      box.tabIndex = 0;
};
addEventListener("load", reach);
addEventListener("resize", reach);
