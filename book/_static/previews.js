/* Shows what a link leads to (theorem, equation, claim, term) while the pointer or the keyboard's
   focus is on it. The texts are in preview-data.js, which is loaded when the first is asked for. */
(() => {
  const top = new URL("../", document.currentScript.src);
  const box = document.createElement("div");
  box.className = "preview bd-article";
  box.id = "preview";
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  document.body.append(box);
  let data, timer, shown;

  const load = () =>
    (data ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL("_static/preview-data.js", top);
      script.onload = () => resolve(window.fedPreviews);
      script.onerror = reject;
      document.head.append(script);
    }));

  const place = (link) => {
    const at = link.getClientRects()[0] ?? link.getBoundingClientRect();
    const under = innerHeight - at.bottom;
    box.style.maxHeight = `min(24rem, ${Math.max(under, at.top) - 18}px)`;
    const left = Math.min(at.left, innerWidth - box.offsetWidth - 12);
    const below = box.offsetHeight + 12 < under || at.top < under;
    box.style.left = `${Math.max(12, left)}px`;
    box.style.top = `${below ? at.bottom + 6 : at.top - box.offsetHeight - 6}px`;
  };

  const hide = () => {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown = undefined;
    box.hidden = true;
  };

  /* A number from a stored run: what its title says, without a pointer too. */
  const tell = (number) => {
    const same = shown === number && !box.hidden;
    hide();
    if (same) return;
    shown = number;
    box.textContent = number.dataset.origin;
    box.hidden = false;
    number.setAttribute("aria-describedby", box.id);
    place(number);
  };

  const show = async (link) => {
    const address = decodeURIComponent(link.href.slice(top.href.length));
    const text = link.href.startsWith(top.href) && (await load())[address];
    if (!text || shown !== link) return;
    box.innerHTML = text;
    box.hidden = false;
    link.setAttribute("aria-describedby", box.id);
    place(link);
    window.MathJax?.typesetPromise?.([box]);
  };
  new ResizeObserver(() => shown && place(shown)).observe(box); // formulas are set as they come in sight

  const soon = (what, wait) => {
    clearTimeout(timer);
    timer = setTimeout(what, wait);
  };
  const begin = (link, wait) =>
    soon(() => {
      if (shown === link) return;
      hide();
      shown = link;
      show(link);
    }, wait);

  const links = '.bd-article a.internal[href*="#"]:not(.headerlink)';
  for (const link of document.querySelectorAll(links)) {
    link.addEventListener("mouseenter", () => begin(link, 150));
    link.addEventListener("mouseleave", () => soon(hide, 200));
    link.addEventListener("focus", () => link.matches(":focus-visible") && begin(link, 0));
    link.addEventListener("blur", hide);
    link.addEventListener("click", hide);
  }
  for (const number of document.querySelectorAll(".result")) {
    number.dataset.origin = number.title;
    number.tabIndex = 0;
    number.setAttribute("role", "button");
    number.addEventListener("click", () => tell(number));
    number.addEventListener("blur", hide);
    number.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      tell(number);
    });
  }
  box.addEventListener("mouseenter", () => clearTimeout(timer)); // its text can be selected
  box.addEventListener("mouseleave", () => soon(hide, 200));
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
})();
