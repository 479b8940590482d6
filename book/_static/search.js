/* The book's search. It has the interface of Sphinx's searchtools.js, which the theme calls, and finds
   sections by MiniSearch (vendor/minisearch.js): any of the words, by BM25, with stems, beginnings of
   words, one typing error, and words that mean the same. */
"use strict";

const BookSearch = {
  root: () => document.documentElement.dataset.content_root || "./",
  engine: null,
  loading: null,

  /* Words that say nothing about what is looked for. */
  stopWords: new Set(
    (
      "a about an and any are as at be been by can could did do does for from get go had has have how i if in into is it " +
      "its many may me mean means might much must my need of on one or our s should so than that the their them then " +
      "there these they this those to us use used using want was way we were what when where which who why will with " +
      "without would you your"
    ).split(" "),
  ),

  /* Words of one meaning in this field; the first stands for all of them. */
  synonyms: [
    "algorithm method procedure",
    "gpu cuda",
    "cite citation bibtex",
    "erratum errata mistake misprint error-in-paper",
    "parameter hyperparameter setting configuration",
    "heterogeneity heterogeneous noniid skew",
    "picture image photo",
    "reconstruct reconstruction invert inversion recover",
    "install setup installation environment",
    "bit communication bandwidth traffic",
    "hardware machine computer processor",
    "fast speed runtime quick slow benchmark",
    "licence license",
    "figure plot chart fig",
    "client device worker",
    "proof prove proved derivation",
    "privacy private security leak leakage",
    "choose select pick recommend",
    "oscillate oscillation zigzag chatter",
    "constraint constrained",
    "compress compression sparsify sparsification quantize quantization",
    "dataset data",
    "reproduce rerun replicate recompute",
    "own custom",
    "exercise practice",
    "verdict judged judgement",
    "1 one",
    "2 two",
    "3 three",
    "4 four",
    "5 five",
    "10 ten",
  ],

  /* Terms of several words that are written in more than one way. */
  phrases: [
    [/\blearning rates?\b/g, "step size"],
    [/\bnon[- ]iid\b/g, "noniid"],
    [/\bnon[- ]i\.i\.d\.?/g, "noniid"],
    [/\bprojection[- ]free\b/g, "frank wolfe projection"],
    [/\bset(?:ting)? up\b/g, "setup"],
    [/\btop[- ]?k\b/g, "topk"],
    [/\brand[- ]?k\b/g, "randk"],
    [/\bfig\.? (?=\d)/g, "figure "],
    [/\b(figure|table|theorem|corollary)s (\d+) and (\d+)\b/g, "$1 $2 $1 $3"],
    [/\b(figure|table|theorem|lemma|corollary) (\d+)\b/g, "$1 $2 $1$2"], // together rarer than apart
    [/α/g, "alpha"],
    [/β/g, "beta"],
    [/ε|ϵ/g, "epsilon"],
    [/η/g, "eta"],
    [/λ/g, "lambda"],
    [/ρ/g, "rho"],
    [/σ/g, "sigma"],
    [/τ/g, "tau"],
  ],

  stems: new Map(),
  meanings: new Map(),

  stem(word) {
    if (!BookSearch.stems.has(word)) {
      const stemmed = word.length > 3 ? BookSearch.stemmer.stemWord(word) : word;
      BookSearch.stems.set(word, stemmed);
    }
    return BookSearch.stems.get(word);
  },

  term(word) {
    const lower = word.toLowerCase();
    if (BookSearch.stopWords.has(lower)) return null;
    const stemmed = BookSearch.stem(lower);
    return BookSearch.meanings.get(stemmed) || stemmed;
  },

  tokens(text) {
    let plain = text.toLowerCase().replace(/[‐‑–]/g, "-");
    for (const [pattern, replacement] of BookSearch.phrases) plain = plain.replace(pattern, replacement);
    return plain.split(/[^\p{L}\p{N}]+/u).filter((word) => word);
  },

  build(records) {
    BookSearch.stemmer = new Stemmer();
    for (const group of BookSearch.synonyms) {
      const [first, ...others] = group.split(" ").map((word) => BookSearch.stem(word));
      for (const other of others) BookSearch.meanings.set(other, first);
    }
    const engine = new MiniSearch({
      fields: ["title", "names", "page", "trail", "text"],
      storeFields: ["url", "page", "title", "trail", "text", "sort"],
      tokenize: BookSearch.tokens,
      processTerm: BookSearch.term,
      searchOptions: {
        boost: { title: 5, names: 6, page: 3, trail: 2, text: 1 },
        combineWith: "OR",
        prefix: (term) => term.length > 2,
        fuzzy: (term) => (term.length > 4 ? 1 : false),
        weights: { prefix: 0.3, fuzzy: 0.2 },
        bm25: { k: 1.2, b: 0.5, d: 0.3 },
      },
    });
    engine.addAll(records.map((record, id) => ({ id, ...record })));
    BookSearch.engine = engine;
  },

  script(path) {
    return new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = BookSearch.root() + path;
      element.onload = resolve;
      element.onerror = () => reject(new Error(`${path} is not there`));
      document.head.append(element);
    });
  },

  load() {
    BookSearch.loading ||= Promise.all([
      BookSearch.script("_static/vendor/minisearch.js"),
      BookSearch.script("_static/search-data.js"),
    ]).then(() => BookSearch.build(window.bookRecords));
    return BookSearch.loading;
  },

  /* What a record is worth beside a section. A claim or an erratum asked for by its number is worth more. */
  worth: { section: 1, term: 0.8, statement: 0.8, erratum: 0.5, claim: 0.4, API: 0.3 },

  score(result, asked) {
    const share = new Set(result.queryTerms).size / asked.size;
    const isNamed = Object.entries(result.match).some(
      ([term, fields]) => /^[a-z]\d+$/.test(term) && asked.has(term) && fields.includes("names"),
    );
    const worth = isNamed ? 2 : BookSearch.worth[result.sort];
    return result.score * share * share * worth;
  },

  /* Pages by their best three sections; a section that has more of the words comes first. */
  find(query) {
    const asked = new Set(BookSearch.tokens(query).map(BookSearch.term).filter((term) => term));
    if (!asked.size) return [];
    const sections = BookSearch.engine
      .search(query)
      .map((result) => ({ ...result, score: BookSearch.score(result, asked) }));
    sections.sort((a, b) => b.score - a.score);
    const pages = new Map();
    for (const section of sections) {
      const page = section.url.split("#")[0];
      if (!pages.has(page)) pages.set(page, []);
      if (pages.get(page).length < 3) pages.get(page).push(section);
    }
    const total = (page) => page.reduce((sum, { score }, i) => sum + score / 4 ** i, 0);
    return [...pages.values()].sort((a, b) => total(b) - total(a)).slice(0, 12);
  },

  /* The part of a text with most of the words that were found, which are marked. */
  snippet(section) {
    const found = new Set(section.terms);
    const pieces = section.text.split(/(\s+)/);
    const hits = pieces.map((piece) => {
      const terms = BookSearch.tokens(piece).map(BookSearch.term);
      return terms.some((term) => term && found.has(term));
    });
    const length = 56; // pieces, half of them spaces
    let best = 0;
    let most = -1;
    for (let start = 0; start < Math.max(1, pieces.length - length / 2); start += 8) {
      const count = hits.slice(start, start + length).filter(Boolean).length;
      if (count > most) [best, most] = [start, count];
    }
    const line = document.createElement("p");
    if (best) line.append("… ");
    pieces.slice(best, best + length).forEach((piece, i) => {
      if (!hits[best + i]) return line.append(piece);
      const mark = document.createElement("mark");
      mark.textContent = piece;
      line.append(mark);
    });
    if (best + length < pieces.length) line.append(" …");
    return line;
  },

  link(section, text) {
    const link = document.createElement("a");
    link.href = BookSearch.root() + section.url;
    link.textContent = text;
    return link;
  },

  entry(sections) {
    const item = document.createElement("li");
    const [first, ...others] = sections;
    const isPage = first.title === first.page;
    item.append(BookSearch.link(first, isPage ? first.page : `${first.page}: ${first.title}`));
    const trail = first.trail.split(" › ")[0];
    if (trail) {
      const place = document.createElement("span");
      place.className = "search-place";
      place.textContent = ` ${trail}`;
      item.append(place);
    }
    if (first.text) item.append(BookSearch.snippet(first));
    if (others.length) {
      const more = document.createElement("p");
      more.className = "search-more";
      others.forEach((section, i) => {
        if (i) more.append(" · ");
        more.append(BookSearch.link(section, section.title));
      });
      item.append(more);
    }
    return item;
  },

  show(query) {
    const pages = BookSearch.find(query);
    const out = document.getElementById("search-results");
    const summary = document.createElement("p");
    summary.className = "search-summary";
    summary.setAttribute("role", "status");
    summary.textContent = pages.length
      ? `${pages.length} ${pages.length === 1 ? "page" : "pages"} for “${query}”, the nearest first.`
      : `Nothing in the book resembles “${query}”. Try other words, or a claim's number such as C3.`;
    const list = document.createElement("ol");
    list.className = "search";
    list.append(...pages.map(BookSearch.entry));
    out.replaceChildren(summary, list);
  },
};

const Search = {
  async performSearch(query) {
    try {
      await BookSearch.load();
      BookSearch.show(query.trim());
    } catch (error) {
      document.getElementById("search-results").textContent = `The search cannot start: ${error.message}.`;
    }
  },
};

addEventListener("DOMContentLoaded", () => {
  if (!location.pathname.endsWith("/search.html")) return;
  const field = document.querySelector(".bd-search-container input[name=q]");
  const query = new URLSearchParams(location.search).get("q") || "";
  let waiting = 0;
  field.value = query;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => field.value.trim() && Search.performSearch(field.value), 150);
  });
  if (query.trim()) Search.performSearch(query);
});
