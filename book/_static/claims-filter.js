/* Narrows a list of claims to a paper, a verdict and fresh seeds. Without this script, and in print, the
   list is whole. A claim is shown if it has the class of every pressed button. */
for (const bar of document.querySelectorAll(".claims-filter")) {
  const within = [
    ...bar.parentElement.querySelectorAll(".claims"),
  ].find((list) => bar.compareDocumentPosition(list) & Node.DOCUMENT_POSITION_FOLLOWING);
  const rows = [...within.children];
  const groups = [...bar.querySelectorAll("[role=group]")];
  const count = bar.querySelector(".claims-count");

  /* The choice is in the address, so that it can be sent and returned to. */
  const remember = (chosen) => {
    const address = new URL(location.href);
    if (chosen.length) address.searchParams.set("show", chosen.join(","));
    else address.searchParams.delete("show");
    if (address.href !== location.href) history.replaceState(null, "", address);
  };
  const asked = (new URL(location.href).searchParams.get("show") ?? "").split(",");

  const show = () => {
    const chosen = groups
      .map((group) => group.querySelector("[aria-pressed=true]").dataset.show)
      .filter(Boolean);
    for (const row of rows)
      row.hidden = !chosen.every((name) => row.classList.contains(name));
    const left = rows.filter((row) => !row.hidden).length;
    remember(chosen);
    const some = left === rows.length ? left : `${left} of ${rows.length}`;
    count.textContent = `${some} ${count.dataset.noun}`;
  };

  for (const group of groups)
    group.addEventListener("click", (event) => {
      const pressed = event.target.closest("button");
      if (!pressed) return;
      for (const button of group.querySelectorAll("button"))
        button.setAttribute("aria-pressed", button === pressed);
      show();
    });

  bar.hidden = false;
  for (const name of asked.filter(Boolean))
    bar.querySelector(`[data-show="${CSS.escape(name)}"]`)?.click();
}

/* On a phone each claim is one line, which its number opens: without that the list is seventy screens long. */
const phone = matchMedia("(max-width: 600px)");
const fold = (claim, folded) => {
  claim.classList.toggle("is-folded", folded);
  claim.querySelector("button.claim-opener")?.setAttribute("aria-expanded", String(!folded));
};
const addOpener = (claim) => {
  if (claim.querySelector("button.claim-opener")) return;
  const number = claim.querySelector("strong");
  const opener = document.createElement("button");
  opener.type = "button";
  opener.className = "claim-opener";
  opener.append(...number.childNodes);
  number.append(opener);
};
const removeOpener = (claim) => {
  const opener = claim.querySelector("button.claim-opener");
  opener?.replaceWith(...opener.childNodes);
};
const claims = [...document.querySelectorAll(".claims > .claim")];
for (const claim of claims) {
  claim.addEventListener("click", (event) => {
    const folded = claim.classList.contains("is-folded");
    const head = event.target.closest("p");
    if (folded) fold(claim, false);
    else if (phone.matches && head === claim.firstElementChild && !event.target.closest("a")) fold(claim, true);
  });
}
const asTheScreenIs = () => {
  for (const claim of claims) {
    if (phone.matches) addOpener(claim);
    else removeOpener(claim);
    fold(claim, phone.matches && `#${claim.id}` !== location.hash);
  }
};
phone.addEventListener("change", asTheScreenIs);
asTheScreenIs();

/* A link to a claim must reach it, whatever is chosen. */
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (claims.includes(target)) fold(target, false);
  if (!target?.hidden) return;
  for (const all of document.querySelectorAll('.claims-filter [data-show=""]')) all.click();
  target.scrollIntoView();
});
