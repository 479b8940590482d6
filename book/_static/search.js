/* The book's search. It has the interface of Sphinx's searchtools.js, which the theme calls, and finds
   sections by MiniSearch (vendor/minisearch.js): any of the words, by BM25, with stems, beginnings of
   words, typing errors, and words that mean the same. No lookbehind in patterns: older phones have none. */
"use strict";

const BookSearch = {
  root: () => document.documentElement.dataset.content_root || "./",
  engine: null,
  loading: null,

  /* Words that say nothing about what is looked for. */
  stopWords: new Set(
    (
      "a about actually all also am an and another any are as at be because been being but by can cannot could did do does " +
      "doing done each else even every for from get gets go going had has have having here how i if in instead into is it " +
      "its just like many may me mean might mine much must my of on one or other our ours please really s same should so " +
      "some something still such than that the their them then there these they thing things this those to too us use used " +
      "using very want was way we were what when where whether which while who whose why will with within without would " +
      "yes yet you your"
    ).split(" "),
  ),

  /* Words of a question that are left out beside others. */
  fillers: new Set(
    (
      "big effect effects example explain explained give gives given help impact influence large let list look make makes " +
      "meaning means need needed needs page possible role say says section show shown simply tell try understand"
    ).split(" "),
  ),

  /* Words of one meaning in this field; the first stands for all of them. */
  synonyms: [
    "algorithm method procedure",
    "attack attacker adversary",
    "bibliography references literature",
    "bit byte communication bandwidth traffic",
    "choose select pick recommend",
    "cite citation bibtex",
    "client device worker",
    "compress compression sparsify sparsification quantize quantization",
    "compressor sparsifier quantizer",
    "constraint constrained",
    "cpu processor",
    "crash exception traceback",
    "dataframe frame pandas",
    "dataset data",
    "erratum errata mistake misprint error-in-paper",
    "exercise practice quiz",
    "fair fairness unfair unfairness discrimination parity",
    "fast speed runtime quick slow benchmark throughput speedup latency",
    "figure plot chart fig",
    "gpu cuda",
    "hardware machine computer laptop",
    "heterogeneity heterogeneous noniid skew skewness",
    "install setup installation environment",
    "licence license",
    "molecule molecular chemistry",
    "oscillate oscillation zigzag chatter",
    "own custom",
    "parallel core multicore",
    "parameter hyperparameter setting configuration",
    "participation participate participant",
    "picture image photo",
    "privacy private security leak leakage confidential",
    "proof prove proved proven derivation",
    "reconstruct reconstruction invert inversion recover",
    "reinforcement rl",
    "reproduce rerun replicate recompute rebuild",
    "resume continue checkpoint",
    "start begin beginner newcomer introduction intro",
    "tune tuning calibrate",
    "unequal imbalance imbalanced unbalanced",
    "verdict judged judgement",
    "2 two",
    "3 three",
    "4 four",
    "5 five",
    "6 six",
    "7 seven",
    "8 eight",
    "9 nine",
    "10 ten",
    "20 twenty",
    "30 thirty",
    "40 forty",
    "50 fifty",
    "60 sixty",
    "100 hundred",
  ],

  /* Terms of several words that are written in more than one way. */
  phrases: [
    [/\blearning rates?\b/g, "step size"],
    [/\bnon[- ]iid\b/g, "noniid"],
    [/\bnon[- ]i\.i\.d\.?/g, "noniid"],
    [/\b(?:non[- ]|not )(convex|smooth)/g, "non$1"],
    [/\bprojection[- ]free\b/g, "frank wolfe projection"],
    [/\bset(?:ting)? up\b/g, "setup"],
    [/\btop[-_ ]?k\b/g, "topk"],
    [/\brand[-_ ]?k\b/g, "randk"],
    [/\b([a-z])\/([a-z])\b/g, "$1$2"], // K/d
    [/(?:ℓ|\bl)[-_]?(?=\d)/g, "l"], // a norm
    [/\bfigs?\.? ?(?=\d)/g, "figure "],
    [/\btab\.? ?(?=\d)/g, "table "],
    [/\b(?:thm|theo)\.? ?(?=\d)/g, "theorem "],
    [/\b(figure|table|theorem|lemma)(?=\d)/g, "$1 "],
    [/\b(figure|table|theorem|corollary)s (\d+) and (\d+)\b/g, "$1 $2 $1 $3"],
    [/\b(figure|table|theorem|lemma|corollary) (\d+)\b/g, "$1 $2 $1$2"], // together rarer than apart
    [/α/g, "alpha"],
    [/β/g, "beta"],
    [/γ/g, "gamma"],
    [/δ/g, "delta"],
    [/ε|ϵ/g, "epsilon"],
    [/η/g, "eta"],
    [/θ/g, "theta"],
    [/κ/g, "kappa"],
    [/λ/g, "lambda"],
    [/μ|µ/g, "mu"],
    [/ρ/g, "rho"],
    [/σ/g, "sigma"],
    [/τ/g, "tau"],
  ],

  /* Names such as NuclearBall, L1Ball and FedCMOOPref. */
  compound: /\b[A-Za-z]\w*[A-Z]\w*[a-z]\w*\b/g,

  stems: new Map(),
  meanings: new Map(),
  corrections: new Map(),

  stem(word) {
    if (!BookSearch.stems.has(word)) {
      const stemmed = word.length > 3 ? BookSearch.stemmer.stemWord(word) : word;
      BookSearch.stems.set(word, stemmed);
    }
    return BookSearch.stems.get(word);
  },

  /* What a word of the book counts as: its stem, or that of the first of its synonyms. */
  term(word) {
    const lower = word.toLowerCase();
    if (BookSearch.stopWords.has(lower)) return null;
    const stemmed = BookSearch.stem(lower);
    return BookSearch.meanings.get(stemmed) || stemmed;
  },

  /* The terms of a query, and how far each is trusted: a corrected word less than another. */
  ask(query) {
    const trust = new Map();
    const add = (word, share) => {
      const term = BookSearch.term(word);
      if (term !== null) trust.set(term, Math.max(share, trust.get(term) || 0));
    };
    const all = BookSearch.tokens(query).filter((word) => !BookSearch.stopWords.has(word));
    const weighty = all.filter((word) => !BookSearch.fillers.has(word));
    const words = weighty.length ? weighty : all;
    words.forEach((word, i) => {
      const { words: nearest, errors } = BookSearch.nearest(word);
      nearest.forEach((known) => add(known, BookSearch.trust[errors]));
      const joined = word + words[i + 1]; // mini batch
      if (BookSearch.words.has(joined)) add(joined, 0.6);
    });
    return trust;
  },

  /* The words of the book that a word of a query stands for, and the number of errors in it. */
  nearest(word) {
    if (!BookSearch.corrections.has(word)) {
      const isKnown = BookSearch.vocabulary.has(BookSearch.stem(word));
      const corrected = isKnown ? { words: [word], errors: 0 } : BookSearch.correct(word);
      BookSearch.corrections.set(word, corrected);
    }
    return BookSearch.corrections.get(word);
  },

  /* A word that is not in the book: two words written as one, the beginning of a word, or a word with
     a typing error, or in long words with two. Of several candidates the more frequent one. */
  correct(word) {
    if (word.length < 4 || /\d/.test(word)) return { words: [word], errors: 0 };
    for (let i = 3; i <= word.length - 3; i++) {
      const parts = [word.slice(0, i), word.slice(i)];
      if (parts.every((part) => BookSearch.words.has(part))) return { words: parts, errors: 0 };
    }
    const allowed = word.length < 8 ? 1 : 2;
    let best = { words: [word], errors: 0 };
    let least = Infinity;
    for (const [candidate, count] of BookSearch.words) {
      const longer = candidate.length - word.length;
      const isBeginning = candidate.startsWith(word);
      if (Math.abs(longer) > allowed && !isBeginning) continue;
      const errors = isBeginning ? 1 : BookSearch.typingErrors(word, candidate);
      if (errors > allowed) continue;
      const isOtherLetter = candidate[0] !== word[0];
      const distance = errors + (isBeginning ? longer / 8 : 0) + (isOtherLetter ? 0.5 : 0) - Math.log10(count) / 10;
      if (distance < least) {
        least = distance;
        best = { words: [candidate], errors };
      }
    }
    return best;
  },

  /* How many letters are missing, added, wrong or exchanged with their neighbours. */
  typingErrors(first, second) {
    let before = [];
    let last = [...Array(second.length + 1).keys()];
    for (let i = 1; i <= first.length; i++) {
      const row = [i];
      for (let j = 1; j <= second.length; j++) {
        const wrong = first[i - 1] === second[j - 1] ? 0 : 1;
        row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + wrong);
        const isExchanged = i > 1 && j > 1 && first[i - 1] === second[j - 2] && first[i - 2] === second[j - 1];
        if (isExchanged) row[j] = Math.min(row[j], before[j - 2] + 1);
      }
      [before, last] = [last, row];
    }
    return last[second.length];
  },

  /* The parts of a compound name. FedAvg is one part. */
  parts(name) {
    const seams = name.replace(/([a-z0-9])([A-Z][a-z])/g, "$1 $2").replace(/([A-Z]{2})([A-Z][a-z])/g, "$1 $2");
    return seams.replace(/\bFed /g, "Fed");
  },

  tokens(text) {
    const named = text.replace(BookSearch.compound, (name) => {
      const parts = BookSearch.parts(name);
      return parts === name ? name : `${name} ${parts}`;
    });
    let plain = named.toLowerCase().replace(/[‐‑–]/g, "-");
    for (const [pattern, replacement] of BookSearch.phrases) plain = plain.replace(pattern, replacement);
    return plain.split(/[^\p{L}\p{N}]+/u).filter((word) => word);
  },

  build(records) {
    BookSearch.stemmer = new Stemmer();
    for (const group of BookSearch.synonyms) {
      const [first, ...others] = group.split(" ").map((word) => BookSearch.stem(word));
      for (const other of others) BookSearch.meanings.set(other, first);
    }
    BookSearch.words = new Map(); // of the book, and how often each is there
    const engine = new MiniSearch({
      fields: ["title", "names", "page", "trail", "text"],
      storeFields: ["url", "page", "title", "trail", "names", "text", "sort"],
      tokenize: BookSearch.tokens,
      processTerm(word) {
        BookSearch.words.set(word, (BookSearch.words.get(word) || 0) + 1);
        return BookSearch.term(word);
      },
      searchOptions: {
        boost: { title: 4, names: 4, page: 3, trail: 1.5, text: 1 },
        combineWith: "OR",
        prefix: (term) => term.length > 3,
        weights: { prefix: 0.3, fuzzy: 0 },
        bm25: { k: 1.5, b: 0.4, d: 0 },
      },
    });
    engine.addAll(records.map((record, id) => ({ id, ...record })));
    BookSearch.vocabulary = new Set([...[...BookSearch.words.keys()].map(BookSearch.stem), ...BookSearch.meanings.keys()]);
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

  /* How far a word of a query is trusted if it had this many errors. */
  trust: [1, 0.9, 0.7],

  /* What a record is worth beside a section. */
  worth: { section: 1, term: 0.7, statement: 0.8, check: 0.5, erratum: 0.5, claim: 0.25, API: 0.2 },

  /* Names of the library in a query: TopK, from_frame, run( and the run of fl.run. */
  identifiers(query) {
    const names = query.match(/[A-Za-z][\w.]*\(?/g) || [];
    const isCode = (name) => /[a-z0-9][A-Z]|_|\w\.\w|\($/.test(name);
    return names.filter(isCode).map((name) => name.replace(/[.(]+$/, "").split(".").pop());
  },

  /* What a result is worth: more if its number, such as C3, or its name in the library is asked for. */
  value(result, trust, identifiers) {
    const numbers = Object.entries(result.match).filter(
      ([term, fields]) => /^[a-z]\d+$/.test(term) && trust.has(term) && fields.includes("names"),
    );
    if (numbers.length) return 2;
    const isNamed = result.sort === "API" && identifiers.includes(result.title.split(".").pop());
    if (isNamed) return 0.5;
    const isProof = result.url.startsWith("notebooks/note_");
    return BookSearch.worth[result.sort] * (isProof ? 0.7 : 1);
  },

  /* The share of the neighbours in a query that are neighbours in a section. */
  neighbours(section, asked) {
    if (asked.length < 2) return 0;
    const text = [section.page, section.title, section.names, section.text].join(" ");
    const terms = BookSearch.tokens(text).map(BookSearch.term).filter((term) => term);
    const pairs = new Set(terms.slice(1).map((term, i) => `${terms[i]} ${term}`));
    return asked.slice(1).filter((term, i) => pairs.has(`${asked[i]} ${term}`)).length / (asked.length - 1);
  },

  /* Whether a title has the words that are asked for, and no others. */
  isTitle(section, asked) {
    const terms = BookSearch.tokens(section.title).map(BookSearch.term).filter((term) => term);
    return terms.every((term) => asked.includes(term)) && asked.every((term) => terms.includes(term));
  },

  /* Sections, each with its score: what BM25 says, more if it has more of the words, and rarer ones,
     and if they stand side by side or are the title. */
  sections(query) {
    const trust = BookSearch.ask(query);
    const asked = [...trust.keys()];
    const identifiers = BookSearch.identifiers(query);
    const found = BookSearch.engine.search(asked.join(" "), {
      tokenize: (text) => text.split(" "),
      processTerm: (term) => term,
      boostTerm: (term) => trust.get(term),
    });
    const rarity = new Map();
    for (const [term, share] of trust) {
      const count = found.filter(({ queryTerms }) => queryTerms.includes(term)).length;
      rarity.set(term, share * Math.log(1 + BookSearch.engine.documentCount / (count + 0.5)));
    }
    const sum = (terms) => [...new Set(terms)].reduce((total, term) => total + rarity.get(term), 0);
    const whole = sum(asked);
    const share = (terms) => sum(terms) / whole;
    const nearestFirst = (a, b) => b.score - a.score;
    const sections = found.map((result) => {
      const score = result.score * share(result.queryTerms) ** 2 * BookSearch.value(result, trust, identifiers);
      return { ...result, score };
    });
    sections.sort(nearestFirst);
    for (const section of sections.slice(0, 60)) {
      const title = BookSearch.isTitle(section, asked) ? 1 : 0;
      section.score *= 1 + title + BookSearch.neighbours(section, asked);
    }
    return { sections: sections.sort(nearestFirst), share };
  },

  /* Pages by their best sections: more if together they have more of the words. */
  find(query) {
    const { sections, share } = BookSearch.sections(query);
    const pages = new Map();
    for (const section of sections) {
      const page = section.url.split("#")[0];
      if (!pages.has(page)) pages.set(page, []);
      pages.get(page).push(section);
    }
    const total = (page) => {
      const sum = page.slice(0, 3).reduce((total, { score }, i) => total + score / 2 ** i, 0);
      return sum * share(page.slice(0, 4).flatMap(({ queryTerms }) => queryTerms));
    };
    const scored = [...pages.values()].map((page) => ({ score: total(page), best: page.slice(0, 3) }));
    scored.sort((a, b) => b.score - a.score);
    return scored.slice(0, 12).map(({ best }) => best);
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
